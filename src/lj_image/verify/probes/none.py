"""A component that nobody can ask; said so in the report, never counted as kept."""

from __future__ import annotations

from collections.abc import Mapping

from lj_image.catalog.release import Component
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe, not_probed


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask nothing."""
    return {}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Say that nothing is known."""
    return not_probed(component.version, "no probe is named for it in image.yaml")


PROBE = Probe(ask, read)
