"""Memory by part and phase as bars of text."""

from __future__ import annotations

from collections.abc import Sequence

from ljperf.memory.phases import Peak, Phase

GB = 10**9
BAR = 60
LETTERS = {
    "parameters": "P",
    "optimizer": "O",
    "gradients": "G",
    "buckets": "B",
    "weights in use": "W",
    "reduction": "R",
    "step": "S",
    "activations": "a",
    "logits": "L",
}


def bars(peak: Peak, width: int = BAR) -> str:
    """One bar per phase, `width` letters for the highest; then what the letters mean, with the peak's bytes."""
    scale = peak.bytes / width
    wide = max(len(phase.name) for phase in peak.phases)
    drawn = [
        f"{phase.name:<{wide}}  {phase.bytes / GB:7.2f} GB  {_bar(phase, scale)}{' <' if phase is peak.highest else ''}"
        for phase in peak.phases
    ]
    return "\n".join([*drawn, "", *_legend(peak.highest)])


def _bar(phase: Phase, scale: float) -> str:
    """Letters by their share: the ends of parts are rounded, not their lengths, so that bars stay comparable."""
    drawn, total = "", 0
    for name, letter in LETTERS.items():
        total += phase.parts.get(name, 0)
        drawn += letter * (round(total / scale) - len(drawn))
    return drawn


def _legend(phase: Phase) -> Sequence[str]:
    shown = [(letter, name, phase.parts.get(name, 0)) for name, letter in LETTERS.items()]
    return [f"  {letter} {name:<15}{size / GB:8.2f} GB" for letter, name, size in shown if size]
