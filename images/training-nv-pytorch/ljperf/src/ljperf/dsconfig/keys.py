"""The keys that DeepSpeed knows, by section and version: `keys.yaml`, read once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ljperf.environment.versions import installed as installed_version

Version = tuple[int, ...]
NEWEST: Version = (9999,)
"""When no DeepSpeed is installed: all keys that any version knows."""

TABLES_END: Version = (0, 19, 6)
"""The last version whose keys are in the tables; a newer one may know more."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section."""

    name: str
    type: str
    """int, float, bool, str, list, mapping, any; stage (0 to 3), device (none, cpu, nvme)."""
    default: Any = None
    nullable: bool = False
    min: float | None = None
    max: float | None = None
    also: str | None = None
    """Its second name."""
    instead: str | None = None
    """What replaces it, if it is deprecated."""
    since: str | None = None
    last: str | None = None

    def known(self, version: Version) -> bool:
        """Does that version of DeepSpeed read it?"""
        return (self.since is None or parsed(self.since) <= version) and (
            self.last is None or version <= parsed(self.last) or version == NEWEST
        )


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the config."""

    pointer: str
    strict: bool
    strict_since: str | None
    keys: tuple[Key, ...]

    def refuses(self, version: Version) -> bool:
        """Does that version end the start over an unknown key or a wrong type (pydantic), or ignore it?"""
        return self.strict and (self.strict_since is None or parsed(self.strict_since) <= version)

    def key(self, name: str) -> Key | None:
        """The key of that name, or second name, in any version; None if there is none."""
        return next((key for key in self.keys if name in (key.name, key.also)), None)

    def names(self, version: Version) -> tuple[str, ...]:
        """All names that this version reads."""
        known = [key for key in self.keys if key.known(version)]
        return tuple(name for key in known for name in (key.name, key.also) if name)


@cache
def sections() -> dict[str, Section]:
    """Every section that is described, by its pointer without the first slash; "" is the config itself."""
    text = files("ljperf.dsconfig").joinpath("keys.yaml").read_text(encoding="utf-8")
    return {name: _section(name, table) for name, table in yaml.safe_load(text).items()}


def _section(name: str, table: dict[str, Any]) -> Section:
    keys = tuple(Key(key, **attributes) for key, attributes in table["keys"].items())
    return Section(name, table["strict"], table.get("strict_since"), keys)


def default_of(section: str, name: str) -> Any:
    """The value that DeepSpeed uses where the config is silent."""
    key = sections()[section].key(name)
    return key.default if key else None


def parsed(text: str) -> Version:
    """The numbers of a version: 0.16.4+cu124 is (0, 16, 4)."""
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3])


def installed() -> str | None:
    """The installed DeepSpeed's version, from its metadata (nothing is imported); None without one."""
    return installed_version("deepspeed")


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if none is near."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return found[0] if found else None
