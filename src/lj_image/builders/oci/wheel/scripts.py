"""Scripts of a wheel, and those that its entry points ask for, as the base's pip writes them.

Format: https://packaging.python.org/specifications/entry-points/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.wheel import Wheel

PLACEHOLDER: Final = b"#!python"
"""How a script begins whose interpreter an installer fills in."""
_NAME: Final = re.compile(r"[\w.+-]+")
_OBJECT: Final = re.compile(r"(?P<module>\w+(?:\.\w+)*):(?P<function>\w+(?:\.\w+)*)\s*(?:\[[^\[\]]*\]\s*)?")
_PIPS: Final = re.compile(r"pip(\d+(\.\d+)?)?")
_EASY_INSTALLS: Final = re.compile(r"easy_install(-\d+\.\d+)?")

# What runs is the same in each; which of the three a base has is decided by its pip.
_UNTIL_25_1: Final = """\
# -*- coding: utf-8 -*-
import re
import sys
from {module} import {first}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({function}())
"""
_UNTIL_25_3: Final = """\
import sys
from {module} import {first}
if __name__ == '__main__':
    if sys.argv[0].endswith('.exe'):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({function}())
"""
_SINCE_26: Final = """\
import sys
from {module} import {first}
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit({function}())
"""


class _Metadata(Distribution):
    """Metadata of which entry_points.txt alone is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "entry_points.txt" else None

    def locate_file(self, path: object) -> Path:
        return Path(str(path))


@dataclass(frozen=True, slots=True)
class EntryPoints:
    """Name -> object of each script that a wheel asks for."""

    console: Mapping[str, str] = field(default_factory=dict)
    gui: Mapping[str, str] = field(default_factory=dict)


def entry_points(wheel: Wheel, member: str, content: bytes) -> EntryPoints:
    """Return the console and GUI scripts; raises BuildError for what no script can be made of."""
    try:
        found = _Metadata(content.decode()).entry_points
    except (UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise wheel.fault(member, f"it cannot be read ({error})") from None
    console, gui = (
        {point.name: _checked(wheel, member, point) for point in found.select(group=group)}
        for group in ("console_scripts", "gui_scripts")
    )
    return EntryPoints(console, gui)


def _checked(wheel: Wheel, member: str, point: EntryPoint) -> str:
    if not _NAME.fullmatch(point.name) or point.name in (".", ".."):
        raise wheel.fault(member, f"the entry point {point.name!r} is no name of a script")
    if not _OBJECT.fullmatch(point.value):
        raise wheel.fault(member, f"the entry point {point.name} names no function: {point.value!r}")
    return point.value


def generated(points: EntryPoints, scheme: Scheme) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of the script of each entry point."""
    for name, value in (_versioned(points.console, scheme.python) | dict(points.gui)).items():
        found = _OBJECT.fullmatch(value)
        assert found is not None
        function = found["function"]
        text = _template(scheme.pip).format(module=found["module"], first=function.partition(".")[0], function=function)
        yield name, f"#!{scheme.executable}\n{text}".encode()


def rewritten(script: bytes, scheme: Scheme) -> bytes:
    """Return a script that begins with the placeholder with its interpreter; arguments beside that are dropped."""
    _, _, rest = script.partition(b"\n")
    return b"#!" + scheme.executable.encode() + b"\n" + rest


def is_wrapper(name: str, points: EntryPoints) -> bool:
    """Say whether a script was made by a build backend for an entry point, so that the generated one stands for it."""
    lowered = name.lower()
    endings = (ending for ending in (".exe", "-script.py", ".pya") if lowered.endswith(ending))
    stem = name[: len(name) - len(next(endings, ""))]
    return stem in points.console or stem in points.gui


def _versioned(points: Mapping[str, str], python: str) -> dict[str, str]:
    """Give pip and easy_install the names of the Python that they are installed for, as pip does."""
    plain = dict(points)
    made: dict[str, str] = {}
    if pip := plain.pop("pip", None):
        made |= {"pip": pip, f"pip{python.partition('.')[0]}": pip, f"pip{python}": pip}
        plain = {name: value for name, value in plain.items() if not _PIPS.fullmatch(name)}
    if easy_install := plain.pop("easy_install", None):
        made |= {"easy_install": easy_install, f"easy_install-{python}": easy_install}
        plain = {name: value for name, value in plain.items() if not _EASY_INSTALLS.fullmatch(name)}
    return made | plain


def _template(pip: str) -> str:
    try:
        version = Version(pip)
    except InvalidVersion:  # a base of which no pip is known: the newest
        return _SINCE_26
    if version >= Version("26.0"):
        return _SINCE_26
    return _UNTIL_25_3 if version >= Version("25.2") else _UNTIL_25_1
