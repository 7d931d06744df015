"""Drawings as SVG text, and an HTML page around them; nothing is loaded from anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 320
LEFT, RIGHT, TOP, BOTTOM = 80, 160, 40, 50
COLOURS = ("#2a6fbb", "#d1802b", "#3b8f4e", "#b5413c", "#7a5bb0", "#6d6d6d", "#1f9aa8", "#a7882f")


def lines(title: str, series: Mapping[str, Sequence[float]], x_label: str, y_label: str) -> str:
    """One line per series over 1, 2, 3 …; the y axis starts at 0 unless a value is below it. No values: says so."""
    values = [value for points in series.values() for value in points]
    if not values:
        return _svg(title, [_text(LEFT, HEIGHT / 2, "no values")])
    low, high = min(0.0, *values), max(values) or 1.0
    longest = max(map(len, series.values()))
    parts = [*_y_axis(low, high, y_label), *_x_numbers(longest, x_label)]
    for index, (name, points) in enumerate(series.items()):
        spots = " ".join(f"{_x(place, longest):.1f},{_y(value, low, high):.1f}" for place, value in enumerate(points))
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<polyline points="{spots}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_dot(_x(place, longest), _y(value, low, high), colour) for place, value in enumerate(points)]
        parts.append(_legend(index, name))
    return _svg(title, parts)


def stacked_bars(title: str, bars: Mapping[str, Mapping[str, float]], unit: str, limit: float | None = None) -> str:
    """One bar per name, built of its parts from the bottom up; `limit` draws a dashed line across."""
    if not bars:
        return _svg(title, [_text(LEFT, HEIGHT / 2, "no values")])
    high = max([*(sum(parts.values()) for parts in bars.values()), limit or 0.0]) or 1.0
    names = list(dict.fromkeys(part for parts in bars.values() for part in parts))
    drawn = _y_axis(0.0, high, unit)
    width = (WIDTH - LEFT - RIGHT) / len(bars)
    for place, (bar, parts) in enumerate(bars.items()):
        drawn += _bar(LEFT + place * width, width, bar, [(names.index(name), parts[name]) for name in parts], high)
    drawn += [_legend(index, name) for index, name in enumerate(names)]
    if limit is not None:
        y = _y(limit, 0.0, high)
        drawn.append(_line(LEFT, y, WIDTH - RIGHT, y, "#b00", 'stroke-dasharray="6 4"'))
    return _svg(title, drawn)


def _bar(left: float, width: float, name: str, parts: Iterable[tuple[int, float]], high: float) -> list[str]:
    drawn, below = [], 0.0
    for index, value in parts:
        top, bottom = _y(below + value, 0.0, high), _y(below, 0.0, high)
        box = f'x="{left + width * 0.15:.1f}" y="{top:.1f}" width="{width * 0.7:.1f}" height="{bottom - top:.1f}"'
        drawn.append(f'<rect {box} fill="{COLOURS[index % len(COLOURS)]}"><title>{value:g}</title></rect>')
        below += value
    return [*drawn, _text(left + width / 2, HEIGHT - BOTTOM + 18, name, "middle")]


def intervals(title: str, values: Mapping[str, tuple[float, float, float]], unit: str) -> str:
    """One bar per name from 0 to its value, with a whisker from low to high: name -> (value, low, high)."""
    if not values:
        return _svg(title, [_text(LEFT, HEIGHT / 2, "no values")])
    flat = [number for triple in values.values() for number in triple]
    low, high = min(0.0, *flat), max(0.0, *flat) or 1.0
    drawn, width = _y_axis(low, high, unit), (WIDTH - LEFT - RIGHT) / len(values)
    for place, (name, (value, lowest, highest)) in enumerate(values.items()):
        middle = LEFT + (place + 0.5) * width
        top, bottom = sorted((_y(value, low, high), _y(0.0, low, high)))
        box = f'x="{middle - width * 0.3:.1f}" y="{top:.1f}" width="{width * 0.6:.1f}" height="{bottom - top:.1f}"'
        drawn.append(f'<rect {box} fill="{COLOURS[0]}"/>')
        drawn.append(_line(middle, _y(lowest, low, high), middle, _y(highest, low, high), "#222"))
        drawn.append(_text(middle, HEIGHT - BOTTOM + 18, name, "middle"))
    return _svg(title, drawn)


def page(title: str, parts: Iterable[str]) -> str:
    """An HTML page: what begins with `<svg` is drawn, all else is shown as it is, escaped."""
    shown = "\n".join(part if part.startswith("<svg") else f"<pre>{escape(part)}</pre>" for part in parts)
    style = "body{font-family:sans-serif;margin:2em;max-width:60em}pre{overflow-x:auto}"
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>\n<h1>{escape(title)}</h1>\n{shown}\n</body></html>\n"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about `count` steps of 1, 2 or 5 times a power of ten."""
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * count >= span)
    first = math.floor(low / step)
    return [step * number for number in range(first, math.ceil(high / step) + 1)]


def _y_axis(low: float, high: float, label: str) -> list[str]:
    drawn = [_text(LEFT, TOP - 10, label, "end")]
    for value in ticks(low, high):
        if low <= value <= high:
            y = _y(value, low, high)
            drawn += [_line(LEFT, y, WIDTH - RIGHT, y, "#ddd"), _text(LEFT - 6, y + 4, f"{value:g}", "end")]
    return drawn


def _x_numbers(count: int, label: str) -> list[str]:
    step = max(1, math.ceil(count / 10))
    numbers = [
        _text(_x(place, count), HEIGHT - BOTTOM + 18, str(place + 1), "middle") for place in range(0, count, step)
    ]
    return [*numbers, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, label, "middle")]


def _x(place: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (place / (count - 1) if count > 1 else 0.5)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1.0)


def _legend(index: int, name: str) -> str:
    y = TOP + index * 18
    colour = COLOURS[index % len(COLOURS)]
    box = f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="12" height="12" fill="{colour}"/>'
    return box + _text(WIDTH - RIGHT + 30, y + 11, name)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def _svg(title: str, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif"'
    heading = f'<text x="{LEFT}" y="16" font-size="14" font-weight="bold">{escape(title)}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{heading}{"".join(parts)}</svg>'
