"""Python distributions: what their installed metadata say, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from lj_image.catalog.release import Component, PipSource
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe, same_version


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask for everything installed: one question for all components, since equal ones are put once."""
    return {"installed": {"op": "distributions"}}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Compare each distribution of the component, or the one that is named like a component of the base."""
    wanted = wanted_of(component)
    answer = answers["installed"]
    if answer.error is not None:
        return Finding(wanted[0][1], None, kept=False, message=answer.error)
    installed = versions_by_name(answer.value)
    found = {name: installed.get(canonicalize_name(name)) for name, _ in wanted}
    wrong = [
        f"{name} {found[name] or 'is not installed'} instead of {version}"
        for name, version in wanted
        if not same_version(version, found[name] or "")
    ]
    return Finding(wanted[0][1], found[wanted[0][0]], kept=not wrong, message="; ".join(wrong))


def wanted_of(component: Component) -> tuple[tuple[str, str], ...]:
    """Return name and version of each distribution that the component stands for."""
    if isinstance(component.source, PipSource):
        return component.source.distributions
    return ((component.id, component.version),)


def versions_by_name(installed: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return normalised name -> version; of several, the one that Python imports."""
    versions: dict[str, str] = {}
    for item in installed:
        versions.setdefault(canonicalize_name(item["name"]), item["version"])
    return versions


PROBE = Probe(ask, read)
