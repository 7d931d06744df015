"""Distribution packages: what the package database says."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from lj_image.catalog.release import AptSource, Component
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask for all installed packages."""
    return {"packages": {"op": "dpkg"}}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Compare each package; a `*` stands for the distribution's revision."""
    assert isinstance(component.source, AptSource)
    wanted = component.source.packages
    answer = answers["packages"]
    if answer.error is not None:
        return Finding(component.version, None, kept=False, message=answer.error)
    found: dict[str, str] = answer.value
    wrong = [
        f"{name} {found.get(name, 'is not installed')} instead of {version}"
        for name, version in wanted
        if not fnmatchcase(found.get(name, ""), version)
    ]
    return Finding(wanted[0][1], found.get(wanted[0][0]), kept=not wrong, message="; ".join(wrong))


PROBE = Probe(ask, read)
