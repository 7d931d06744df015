"""One ablation from what was asked to its report; the only place where machine, runs and numbers meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ljperf.ablation.commands import Measurement, check_options, look_around
from ljperf.ablation.contributions import Ablation, contributions, document_of
from ljperf.ablation.page import page_of
from ljperf.ablation.report import text_of
from ljperf.ablation.runs import Run, claim, collect, order_of, read
from ljperf.ablation.steps import Asked, Machine, Step, ladder
from ljperf.errors import UsageError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found, in all its forms."""

    text: str
    document: dict[str, Any]
    page: str
    exit_code: int
    """0: all ran. 3: some did. 1: none."""
    interrupted: bool = False


def measure(
    asked: Asked,
    measurement: Measurement,
    repeats: int,
    folder: Path,
    *,
    fresh: bool = False,
    confidence: float = 0.95,
    machine: Machine | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run what is missing in the folder, and count. An interruption gives what there is until then.

    Raises UsageError for wrong steps or options, or a folder with other settings.
    """
    check_options(measurement.options)
    steps, left_out = ladder(asked, machine or look_around())
    if not steps:
        raise UsageError(
            "none of these steps can run here", hint="; ".join(f"{one.name}: {one.why}" for one in left_out)
        )
    claim(folder, settings_of(measurement, steps), fresh)
    interrupted = False
    try:
        runs = collect(steps, repeats, folder, measurement, progress)
    except KeyboardInterrupt:
        interrupted, runs = True, kept(steps, repeats, folder)
    ablation = Ablation(measurement.model, repeats, confidence, contributions(steps, runs, confidence), left_out)
    document = document_of(ablation, runs)
    return Outcome(text_of(ablation), document, page_of(ablation), code_of(ablation), interrupted)


def settings_of(measurement: Measurement, steps: tuple[Step, ...]) -> dict[str, Any]:
    """What makes runs comparable: another of these is another ablation. More repeats are the same one, continued."""
    return {
        "model": measurement.model,
        "options": list(measurement.options),
        "program": list(measurement.program),
        "engine_options": list(measurement.engine_options),
        "steps": {step.name: [step.image, dict(step.environment), list(step.options)] for step in steps},
    }


def kept(steps: tuple[Step, ...], repeats: int, folder: Path) -> tuple[Run, ...]:
    """The runs that the folder has; the others as not reached."""
    return tuple(
        read(folder, step, turn) or Run(step.name, turn, None, "not reached: interrupted")
        for turn, step in order_of(steps, repeats)
    )


def code_of(ablation: Ablation) -> int:
    """The exit code: partly done is 3, nothing done is 1."""
    if ablation.complete:
        return 0
    return 3 if any(part.runs for part in ablation.contributions) else 1
