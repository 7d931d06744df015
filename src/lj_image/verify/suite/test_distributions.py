"""Python's packages: the locked ones are there, the protected ones untouched, and they fit together."""

from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from lj_image.lock.lock import LockedDistribution
from lj_image.plan import ConstraintsLayer
from lj_image.verify.complaints import parse_complaints, unexpected
from lj_image.verify.facts import CONSTRAINTS, DISTRIBUTIONS, PIP_CHECK, Facts
from lj_image.verify.probes.probe import same_version
from lj_image.verify.subject import Subject
from lj_image.verify.verdict import Verdict

MOST_NAMED = 5


def test_distribution(distribution: LockedDistribution, facts: Facts, verdict: Verdict) -> None:
    """It is installed at its locked version, once."""
    answer = facts.answer(DISTRIBUTIONS)
    found = [item for item in answer.value or () if canonicalize_name(item["name"]) == distribution.name]
    if not found:
        verdict.give(False, expected=distribution.version, found=None, message=answer.error or "not installed")
    first = found[0]
    twice = [item["version"] for item in found[1:] if item["location"] == first["location"]]
    verdict.give(
        same_version(distribution.version, first["version"]) and not twice,
        expected=distribution.version,
        found=" and ".join((first["version"], *twice)),
        message=f"in {first['location']}",
    )


def test_complaints(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """`pip check` says nothing but what the release and the base said beforehand."""
    answer = facts.answer(PIP_CHECK)
    if answer.error is not None or "No module named pip" in answer.value["stderr"]:
        verdict.leave_open(answer.error or "there is no pip in the image")
    said = parse_complaints(answer.value["stdout"])
    release = subject.plan.release
    new = [item.line for item in unexpected(said, release.expected_complaints, release.base.facts.complaints)]
    if answer.value["exit_code"] and not said:
        new = [answer.value["stderr"].strip() or f"exit code {answer.value['exit_code']}"]
    known = len(said) - len(new)
    verdict.require_none(new, expected=f"only the {known} complaints foreseen" if known else "no complaint")


def test_protected(protected: str, facts: Facts, verdict: Verdict) -> None:
    """Its files are, byte for byte, those of the base."""
    if facts.base is None:
        verdict.skip("no base image was given to compare with")
    before = facts.protected_in_base.get(protected)
    if before is None:
        verdict.skip("the base does not have it")
    now = facts.protected.get(protected)
    if now is None:
        verdict.give(False, expected=f"the base's {len(before)} files", found="it is not installed")
    if not before:
        verdict.leave_open("the base does not say which files belong to it")
    changed = list(_changes(before, now or {}))
    verdict.give(
        not changed,
        expected=f"the base's {len(before)} files",
        found=f"{len(changed)} changed" if changed else f"the base's {len(before)} files",
        message="; ".join(changed[:MOST_NAMED]),
    )


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            yield f"{path} is gone"
        elif path not in before:
            yield f"{path} is new"
        elif before[path] != now[path]:
            yield f"{path} differs"


def test_constraints(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """The file that PIP_CONSTRAINT names holds the protected versions."""
    planned = [layer.text for layer in subject.plan.layers if isinstance(layer, ConstraintsLayer)]
    if not planned:
        verdict.skip("the plan has no constraints")
    answer = facts.answer(CONSTRAINTS)
    expected = {line for line in planned[0].splitlines() if line and not line.startswith("#")}
    lines = {line.strip() for line in (answer.value or "").splitlines()}
    missing = sorted(expected - lines)
    verdict.give(
        answer.error is None and not missing,
        expected=f"{len(expected)} constraints",
        found=None if answer.error else f"{len(expected) - len(missing)} constraints",
        message=answer.error or ", ".join(missing),
    )
