"""Are the image's hooks here, and do they do anything in this environment?"""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ljperf import startup


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hook at Python's start."""

    installed: str | None
    """The file that has Python run it; None without one."""
    active: bool
    """Was it run in this process, with a wish?"""
    awaited: dict[str, tuple[str, ...]]
    """Module -> patches, by this environment."""


def hooks(environ: Mapping[str, str], folders: Iterable[str] | None = None) -> Hooks:
    """Look for `ljperf.pth` or `ljperf.start` where Python looks."""
    names = ("ljperf.start", "ljperf.pth") if sys.version_info >= (3, 15) else ("ljperf.pth",)
    places = [Path(folder) / name for folder in (folders if folders is not None else _folders()) for name in names]
    found = next((str(path) for path in places if path.is_file()), None)
    active = any(getattr(finder, "mark", None) == startup.MARK for finder in sys.meta_path)
    return Hooks(found, active, {name: tuple(targets) for name, targets in startup.wanted(environ).items()})


def _folders() -> list[str]:
    """Site folders; elsewhere on sys.path, as in the current folder, Python does not look for start files."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys([*site.getsitepackages(), sysconfig.get_path("purelib"), *user]))
