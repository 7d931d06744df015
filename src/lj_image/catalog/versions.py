"""Versions as the family writes them, and templates over them.

Not every version is PEP 440 (`15.0.50.20240403-git`), so nothing here needs one to be.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from lj_image.errors import Location, ManifestError
from lj_image.suggest import did_you_mean

_LEADING_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def public(version: str) -> str:
    """Return a version without its local part: 4.48.3+ali -> 4.48.3 (PEP 440, local version identifiers)."""
    return version.partition("+")[0]


def leading_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers a version starts with: 2.6.0a0+ecf3 -> (2, 6, 0)."""
    found = _LEADING_NUMBERS.match(version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def keeps_promise(promised: str, found: str) -> bool:
    """Say whether a found version is the promised one, as far as the finder can see.

    A library may know less than the manifest: `cudaRuntimeGetVersion` says 12.8 of a promised 12.8.0, and
    `ncclGetVersion` 2.23.4 of 2.23.4.11. What both say must agree, and a single number is no finding. A local part is
    ignored unless one was promised (PEP 440, "Version matching"): torch 2.5.1 calls itself 2.5.1+cu124.
    """
    if promised == found:
        return True
    if "+" in promised:
        return False
    promised_numbers, found_numbers = leading_numbers(promised), leading_numbers(public(found))
    if promised == public(found):
        return True
    if len(found_numbers) < min(2, len(promised_numbers)):
        return False
    return promised_numbers[: len(found_numbers)] == found_numbers and _is_plain(public(found))


def _is_plain(version: str) -> bool:
    """Say whether a version is numbers only: a pre-release is never a shorter form of its release."""
    return _LEADING_NUMBERS.fullmatch(version) is not None


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1: by PEP 440 where both are such versions, else by runs of digits and text."""
    from packaging.version import InvalidVersion, Version

    try:
        a, b = Version(left), Version(right)
    except InvalidVersion:
        return _compare_runs(left, right)
    return (a > b) - (a < b)


def _compare_runs(left: str, right: str) -> int:
    for a, b in zip_longest(re.findall(r"\d+|[^\d.]+", left), re.findall(r"\d+|[^\d.]+", right), fillvalue=""):
        key_a, key_b = _run_key(a), _run_key(b)
        if key_a != key_b:
            return 1 if key_a > key_b else -1
    return 0


def _run_key(run: str) -> tuple[int, int, str]:
    return (1, int(run), "") if run.isdigit() else (0, 0, run)


class VersionText(str):
    """A version that a template can cut: `{torch:major.minor}`, `{cuda:majorminor}`, `{version:public}`."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        numbers = leading_numbers(self)
        match spec:
            case "":
                return str(self)
            case "public":
                return public(self)
            case "major" | "major.minor" | "major.minor.patch":
                wanted = spec.count(".") + 1
                if len(numbers) < wanted:
                    raise ValueError(f"{self} has no {spec}")
                return ".".join(map(str, numbers[:wanted]))
            case "majorminor":
                return "".join(map(str, numbers[:2]))
        raise ValueError(f"unknown form {spec!r}; use major, major.minor, major.minor.patch, majorminor or public")


def fill(template: str, values: Mapping[str, str], *, location: Location | None = None) -> str:
    """Fill a template such as `{release}-vllm{vllm}-pytorch{torch:major.minor}`.

    Raises ManifestError for an unknown name or a form that the version does not have.
    """
    try:
        return _Filler().vformat(template, (), {name: VersionText(value) for name, value in values.items()})
    except KeyError as error:
        name = str(error.args[0])
        raise ManifestError(
            f"the template {template!r} names {name!r}, which has no version here",
            hint=did_you_mean(name, values, noun="names"),
            location=location,
        ) from None
    except (ValueError, IndexError, AttributeError) as error:
        raise ManifestError(f"the template {template!r}: {error}", location=location) from None


class _Filler(string.Formatter):
    """Formats by whole names, so that `{accl-n}` and `{base.ngc}` are names like others."""

    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return kwargs[field_name], field_name
