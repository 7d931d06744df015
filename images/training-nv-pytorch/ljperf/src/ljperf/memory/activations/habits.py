"""How the installed Transformers computes attention and loss, as far as it decides what is saved.

Read in the releases' `integrations/sdpa_attention.py` and `loss/loss_utils.py`, and counted in 4.48.3 and 5.25.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final


@dataclass(frozen=True, slots=True)
class Habits:
    """What changed between releases."""

    repeats_heads: bool
    """SDPA reads keys and values copied to all query heads, not as few as there are."""
    copies_heads: bool
    """SDPA reads contiguous copies: then its output has their layout too, and is copied for the output projection."""
    shifts_logits: bool
    """The loss drops the last position's logits, in a copy if there are several sequences; later it shifts labels."""


REFERENCE: Final = "4.48.3"
"""Whose habits are assumed where Transformers is not installed: those that need the most memory."""


def habits_of(release: str) -> Habits:
    """Habits of a release of Transformers, such as 4.48.3; those of `REFERENCE` if it is no version."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None:
        return habits_of(REFERENCE)
    number = (int(found[1]), int(found[2]))
    return Habits(repeats_heads=number < (4, 54), copies_heads=number < (4, 56), shifts_logits=number < (4, 49))


@cache
def installed_habits() -> Habits:
    """Habits of the installed Transformers, which is not imported."""
    try:
        return habits_of(version("transformers"))
    except PackageNotFoundError:
        return habits_of(REFERENCE)
