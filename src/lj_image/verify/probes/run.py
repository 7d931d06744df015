"""Shell commands: what their check prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lj_image.catalog.release import Component, RunSource
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe

TIMEOUT_S: Final = 120


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Run the component's check."""
    assert isinstance(component.source, RunSource)
    return {"check": {"op": "run", "command": component.source.check, "timeout_s": TIMEOUT_S}}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Look for what is expected anywhere in the output of a command that succeeded."""
    assert isinstance(component.source, RunSource)
    expect = component.source.expect
    answer = answers["check"]
    if answer.error is not None:
        return Finding(expect, None, kept=False, message=answer.error)
    output, code = str(answer.value["output"]).strip(), answer.value["exit_code"]
    if code:
        return Finding(expect, None, kept=False, message=f"exit code {code}: {output[-300:]}")
    if expect in output:
        return Finding(expect, expect, kept=True)
    return Finding(
        expect, output[:200] or None, kept=False, message=f"`{component.source.check}` prints something else"
    )


PROBE = Probe(ask, read)
