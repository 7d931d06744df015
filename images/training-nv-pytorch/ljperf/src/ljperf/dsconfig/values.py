"""Which values DeepSpeed's models accept: pydantic's, in lax mode: 5e7 and "50000000" are integers, "5e7" is none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ljperf.dsconfig.keys import Key

TRUE = ("1", "t", "true", "y", "yes", "on")
FALSE = ("0", "f", "false", "n", "no", "off")
DEVICES = ("none", "cpu", "nvme")
INTEGER = re.compile(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*")


def refusal(key: Key, value: Any) -> str | None:
    """Why a strict section refuses this value for this key, as a predicate ("must be …"); None if it takes it."""
    if value is None:
        return None if key.nullable else "must not be null"
    match key.type:
        case "int":
            return _integer(value) or _range(key, float(value))
        case "float":
            return _number(value) or _range(key, float(value))
        case "bool":
            return None if is_bool(value) else "must be true or false"
        case "stage":
            return None if stage_of(value) is not None else "must be 0, 1, 2 or 3"
        case "device":
            return None if value in DEVICES else "must be none, cpu or nvme"
        case "str":
            return None if isinstance(value, str) else "must be a text"
        case "list":
            return None if isinstance(value, list | tuple) else "must be a list"
        case "mapping":
            return None if isinstance(value, Mapping) else "must be a section: { … }"
    return None


def _integer(value: Any) -> str | None:
    if isinstance(value, str):
        return None if INTEGER.fullmatch(value) else "must be an integer, and this text is none"
    if isinstance(value, float):
        return None if value.is_integer() else "must be an integer, not a fraction"
    return None if isinstance(value, int) else "must be an integer"


def _number(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return "must be a number"
        return None
    return None if isinstance(value, int | float) else "must be a number"


def _range(key: Key, value: float) -> str | None:
    if key.min is not None and not value >= key.min:
        return f"must be {key.min:g} or more"
    return f"must be {key.max:g} or less" if key.max is not None and not value <= key.max else None


def is_bool(value: Any) -> bool:
    """Does pydantic take it for a truth value?"""
    if isinstance(value, str):
        return value.lower() in TRUE + FALSE
    return isinstance(value, bool | int | float) and value in (0, 1)


def is_true(value: Any) -> bool:
    """Its truth, once accepted: "yes" and 1 are true, "off" is not."""
    return value.lower() in TRUE if isinstance(value, str) else bool(value)


def stage_of(value: Any) -> int | None:
    """A ZeRO stage as DeepSpeed understands it ("3" and 3.0 are 3); None if it refuses it."""
    if isinstance(value, str):
        return int(value) if value in ("0", "1", "2", "3") else None
    return int(value) if isinstance(value, int | float) and value in (0, 1, 2, 3) else None


def number_of(value: Any) -> int | float | None:
    """A number that is one in JSON (not a bool, not a text, not NaN); None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else value
