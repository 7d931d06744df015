"""Parts of the image that were replaced since it was built: what its constraints say, and what is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ljperf.environment.versions import installed

PIN: Final = re.compile(r"([A-Za-z0-9._-]+)\s*===?\s*([^\s;#]+)")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A part in another version than the image's own."""

    name: str
    pinned: str
    found: str | None
    """None: it is not installed any more."""


def replaced(environ: Mapping[str, str], lookup: Callable[[str], str | None] = installed) -> tuple[Replaced, ...]:
    """What differs from the constraints that PIP_CONSTRAINT names; nothing where nothing is pinned."""
    found = (Replaced(name, pinned, lookup(name)) for name, pinned in pins(environ))
    return tuple(one for one in found if one.found != one.pinned)


def pins(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and versions in the files of PIP_CONSTRAINT; a file that cannot be read pins nothing."""
    for path in environ.get("PIP_CONSTRAINT", "").split():
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            pin = PIN.match(line.strip())
            if pin:
                yield pin[1], pin[2]
