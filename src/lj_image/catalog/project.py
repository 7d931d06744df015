"""A Python project in an image's own folder, as its pyproject.toml tells of it: a wheel of it goes into the image.

What is read here is what `lock/own_wheel.py` can write; anything else is refused, so that nothing is lost in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from lj_image.catalog.catalog import shown
from lj_image.catalog.names import normalised
from lj_image.errors import Location, ManifestError

OWN_INDEX: Final = "own"
"""Stands where the name of an index stands, for a wheel that comes from none."""
MANIFEST: Final = "pyproject.toml"
_REFUSED: Final = ("dynamic", "entry-points", "gui-scripts", "optional-dependencies")
_WHEEL_SETTINGS: Final = {"packages", "force-include"}


@dataclass(frozen=True, slots=True)
class Project:
    """What decides about the wheel of a project, besides its files."""

    folder: Path
    name: str
    """Normalised (PEP 503)."""
    version: str
    summary: str
    licence: str
    requires_python: str
    requires: tuple[str, ...]
    """Requirements (PEP 508), sorted."""
    scripts: tuple[tuple[str, str], ...]
    """Command -> `module:function`, sorted."""
    packages: tuple[str, ...]
    """Folders of import packages, relative to the project's own."""
    included: tuple[tuple[str, str], ...]
    """File of the project -> where it lies in the wheel, sorted."""

    def required_names(self) -> frozenset[str]:
        """Return the normalised names of the distributions that it requires."""
        found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in self.requires)
        return frozenset(normalised(name[0]) for name in found if name)


def read_project(folder: Path) -> Project:
    """Read a project's pyproject.toml (PEP 621, and hatchling's table of the wheel).

    Raises ManifestError for one that is absent, damaged, or says what our wheel would not hold.
    """
    import tomllib  # late: most commands meet a release that was resolved before

    path = folder / MANIFEST
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ManifestError(f"{folder.name} has no {MANIFEST}, so it is no project", location=_at(path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", location=_at(path)) from None
    project, wheel = found.get("project", {}), _wheel_table(found)
    _refuse_unknown(project, wheel, path)
    try:
        return _project(folder, project, wheel)
    except (KeyError, TypeError, AttributeError) as error:
        raise ManifestError(
            f"a project needs a name, a version and hatchling's `packages`: {type(error).__name__} at {error}",
            hint="as tables [project] and [tool.hatch.build.targets.wheel] have them",
            location=_at(path),
        ) from None


def _wheel_table(found: Mapping[str, Any]) -> Mapping[str, Any]:
    table: Any = found
    for key in ("tool", "hatch", "build", "targets", "wheel"):
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def _refuse_unknown(project: Mapping[str, Any], wheel: Mapping[str, Any], path: Path) -> None:
    unknown = [f"project.{name}" for name in _REFUSED if name in project]
    unknown += [f"tool.hatch.build.targets.wheel.{name}" for name in sorted(wheel.keys() - _WHEEL_SETTINGS)]
    if unknown:
        raise ManifestError(
            f"{', '.join(unknown)}: the wheel that lj-image makes of a project would not have it",
            hint=f"write out what it means, with {' and '.join(sorted(_WHEEL_SETTINGS))}",
            location=_at(path),
        )


def _project(folder: Path, project: Mapping[str, Any], wheel: Mapping[str, Any]) -> Project:
    packages = tuple(wheel["packages"])
    included = tuple(sorted(wheel.get("force-include", {}).items()))
    _require_inside(folder, (*packages, *(name for pair in included for name in pair)))
    return Project(
        folder=folder,
        name=normalised(project["name"]),
        version=str(project["version"]),
        summary=" ".join(str(project.get("description", "")).split()),
        licence=project["license"] if isinstance(project.get("license"), str) else "",
        requires_python=str(project.get("requires-python", "")),
        requires=tuple(sorted(project.get("dependencies", ()))),
        scripts=tuple(sorted(project.get("scripts", {}).items())),
        packages=packages,
        included=included,
    )


def _require_inside(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ManifestError(f"{name!r} leads out of the project", location=_at(folder / MANIFEST))


def _at(path: Path) -> Location:
    return Location(shown(path))
