"""The text that a reader sees first: the table, and under it what was left out and what failed."""

from __future__ import annotations

from ljperf.ablation.contributions import Ablation, Contribution
from ljperf.ablation.statistics import Estimate
from ljperf.report.table import table

WIDEST = 10.0  # ten times faster: no bound beyond it says anything
HEADERS = ("step", "runs", "tokens/s", "contribution", "over", "total")


def text_of(ablation: Ablation) -> str:
    """The whole report as text."""
    rows = [row_of(part, ablation.repeats) for part in ablation.contributions]
    lines = [table(HEADERS, rows).rstrip("\n"), "", *notes_of(ablation)]
    return "\n".join(lines)


def row_of(part: Contribution, repeats: int) -> tuple[str | None, ...]:
    """One line of the table."""
    return (
        part.step.name,
        f"{part.runs} of {repeats}",
        speed_text(part.speed),
        gain_text(part.gain),
        part.over,
        gain_text(part.total),
    )


def notes_of(ablation: Ablation) -> list[str]:
    """How to read it; what is missing and why; gains that may be chance."""
    sure = f"{ablation.confidence * 100:.0f} %"
    notes = [f"{ablation.model}; intervals: {sure} confidence, Student's t over rounds, steps paired by round."]
    notes += [f"{one.name} is left out: {one.why}." for one in ablation.left_out]
    for part in ablation.contributions:
        if part.gain and part.gain.low is not None and not part.gain.excludes(0.0):
            notes.append(f"{part.step.name}: no difference to {part.over} is shown; its interval holds 0.")
        notes += [f"{part.step.name} failed: {failure}" for failure in dict.fromkeys(part.failures)]
    if ablation.repeats < 2:
        notes.append("One repeat gives no interval: give --repeats 5.")
    return notes


def speed_text(speed: Estimate | None) -> str:
    """Tokens per second with the half width of its interval."""
    if speed is None:
        return "failed"
    if speed.high is None:
        return f"{speed.value:,.1f}"
    return f"{speed.value:,.1f} ± {speed.high - speed.value:,.1f}"


def gain_text(gain: Estimate | None) -> str | None:
    """A gain in percent, with its interval; None if there is none."""
    if gain is None:
        return None
    if gain.low is None or gain.high is None:
        return f"{percent(gain.value)} %"
    return f"{percent(gain.value)} % ({percent(gain.low)} … {percent(gain.high)})"


def percent(part: float) -> str:
    """With a sign; what two noisy repeats give as a bound can have any length, and none of its digits mean anything."""
    return f"{part * 100:+.1f}" if part < WIDEST else f"> +{WIDEST * 100:.0f}"
