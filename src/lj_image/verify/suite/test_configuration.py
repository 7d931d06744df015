"""The image's configuration: what it runs on, stands on, and says of itself."""

from lj_image.verify.facts import Facts
from lj_image.verify.subject import Subject
from lj_image.verify.variables import expanded
from lj_image.verify.verdict import Verdict


def test_platform(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """It is for the release's processor."""
    expected, found = subject.plan.release.platform.architecture, facts.image.architecture
    verdict.give(expected == found, expected=expected, found=found)


def test_base(facts: Facts, verdict: Verdict) -> None:
    """Its lowest layers are the base's."""
    if facts.base is None:
        verdict.skip("no base image was given")
    below = facts.image.layers[: len(facts.base.layers)]
    verdict.give(
        below == facts.base.layers,
        expected=f"the {len(facts.base.layers)} layers of the base below",
        found="them" if below == facts.base.layers else "other layers",
    )


def test_env(variable: tuple[str, str], facts: Facts, verdict: Verdict) -> None:
    """A planned variable has its value."""
    name, planned = variable
    expected = expanded(planned, facts.base.environment if facts.base else {})
    found = facts.image.environment.get(name)
    verdict.give(expected == found, expected=expected, found=found)


def test_base_environment(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """Variables of the base that the plan does not set are as they were."""
    if facts.base is None:
        verdict.skip("no base image was given")
    planned = {name for name, _ in subject.plan.env}
    found = facts.image.environment
    kept = {name: value for name, value in facts.base.environment.items() if name not in planned}
    wrong = [f"{name}={found.get(name, '(unset)')}" for name, value in kept.items() if found.get(name) != value]
    verdict.require_none(wrong, expected=f"the base's {len(kept)} variables")


def test_label(label: tuple[str, str], facts: Facts, verdict: Verdict) -> None:
    """A label has its value."""
    name, expected = label
    found = facts.image.labels.get(name)
    verdict.give(found == expected, expected=expected, found=found)


def test_entrypoint(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """The entrypoint is the planned one, or the base's."""
    planned = subject.plan.release.config.entrypoint
    if planned is None and facts.base is None:
        verdict.skip("none is planned, and no base image was given")
    expected = planned if planned is not None else facts.base.entrypoint if facts.base else ()
    verdict.give(expected == facts.image.entrypoint, expected=shown(expected), found=shown(facts.image.entrypoint))


def test_cmd(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """The command is the planned one, or the base's."""
    config = subject.plan.release.config
    if config.cmd is None and (facts.base is None or config.entrypoint is not None):
        verdict.skip("none is planned")
    expected = config.cmd if config.cmd is not None else facts.base.cmd if facts.base else ()
    verdict.give(expected == facts.image.cmd, expected=shown(expected), found=shown(facts.image.cmd))


def shown(command: tuple[str, ...]) -> str:
    """Return a command for people."""
    return " ".join(command) or "none"


def test_workdir(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """The working directory is the planned one, or the base's."""
    planned = subject.plan.release.config.workdir
    if planned is None and facts.base is None:
        verdict.skip("none is planned, and no base image was given")
    expected = planned or (facts.base.workdir if facts.base else "/")
    found = facts.image.workdir
    verdict.give((expected.rstrip("/") or "/") == (found.rstrip("/") or "/"), expected=expected, found=found)
