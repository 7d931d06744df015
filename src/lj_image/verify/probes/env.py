"""An environment variable of the base that says a version, for what cannot be asked itself: `env:NVIDIA_BUILD_ID`."""

from __future__ import annotations

from collections.abc import Mapping

from lj_image.catalog.release import BaseSource, Component
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe, compared, keeps_or_refines


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask nothing: the image's configuration says it."""
    return {}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Return the variable's value."""
    probe = component.source.probe if isinstance(component.source, BaseSource) else ""
    name = probe.partition(":")[2]
    found = context.environment.get(name)
    if found is None:
        return Finding(component.version, None, kept=False, message=f"the image has no variable {name}")
    return compared(component.version, found, keeps_or_refines, name)


PROBE = Probe(ask, read)
