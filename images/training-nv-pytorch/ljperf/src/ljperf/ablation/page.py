"""One HTML page without anything to load: the bars as SVG, the table, the notes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from ljperf.ablation.contributions import Ablation, Contribution
from ljperf.ablation.report import HEADERS, gain_text, notes_of, row_of

LABELS: Final = 110  # px for the steps' names
BARS: Final = 520
TAIL: Final = 230  # px for the gain's text behind a bar
ROW: Final = 44

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #ccc; padding: .3rem .8rem; text-align: right; }
td:first-child, th:first-child { text-align: left; }
svg { max-width: 100%; height: auto; } .bar { fill: #3b7dd8; } .whisker { stroke: #222; stroke-width: 1.5; }
"""


def page_of(ablation: Ablation) -> str:
    """The page."""
    title = f"Contribution of each step: {escape(ablation.model)}"
    notes = "".join(f"<li>{escape(note)}</li>" for note in notes_of(ablation))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>\n{bars(ablation.contributions)}\n{_table(ablation)}\n<ul>{notes}</ul></body></html>\n"
    )


def bars(parts: Sequence[Contribution]) -> str:
    """Tokens per second of each step, its interval as a whisker, its contribution behind the bar."""
    longest = max((_end(part) for part in parts), default=0.0) or 1.0
    height = ROW * len(parts) + 10
    rows = "\n".join(_bar(part, index, BARS / longest) for index, part in enumerate(parts))
    return (
        f'<svg viewBox="0 0 {LABELS + BARS + TAIL} {height}" role="img" aria-label="tokens per second">\n{rows}\n</svg>'
    )


def _end(part: Contribution) -> float:
    return 0.0 if part.speed is None else max(part.speed.value, part.speed.high or 0.0)


def _bar(part: Contribution, index: int, scale: float) -> str:
    middle = ROW * index + ROW / 2
    name = f'<text x="{LABELS - 8}" y="{middle + 5:.0f}" text-anchor="end">{escape(part.step.name)}</text>'
    if part.speed is None:
        return f'{name}<text x="{LABELS + 4}" y="{middle + 5:.0f}">failed</text>'
    length = part.speed.value * scale
    label = f"{part.speed.value:,.0f} tokens/s {gain_text(part.gain) or ''}"
    return (
        f'{name}<rect class="bar" x="{LABELS}" y="{middle - 13:.0f}" width="{length:.1f}" height="26"/>'
        f"{_whisker(part, middle, scale)}"
        f'<text x="{LABELS + _end(part) * scale + 8:.1f}" y="{middle + 5:.0f}" font-size="12">{escape(label)}</text>'
    )


def _whisker(part: Contribution, middle: float, scale: float) -> str:
    if part.speed is None or part.speed.low is None or part.speed.high is None:
        return ""
    low, high = (LABELS + max(bound, 0.0) * scale for bound in (part.speed.low, part.speed.high))
    ends = "".join(f"M{at:.1f} {middle - 5:.0f}v10" for at in (low, high))
    return f'<path class="whisker" d="M{low:.1f} {middle:.0f}H{high:.1f}{ends}"/>'


def _table(ablation: Ablation) -> str:
    rows = (row_of(part, ablation.repeats) for part in ablation.contributions)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell or '–')}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in HEADERS)}</tr>{body}</table>"
