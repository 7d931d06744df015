"""What uv is given: a throw-away project that asks for the components on the ground of the base.

The base's packages are handed over as wheels without content or dependencies, by their paths. So uv takes them
as they are (`2.6.0a0+ecf3bae40a.nv25.1` is on no index), and never looks for another version of them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from lj_image.catalog.release import Component, PipSource, Release
from lj_image.errors import Location, ManifestError

PROJECT_NAME: Final = "release"
"""uv says `release depends on …` in its explanations."""
DEFAULT_INDEX: Final = "pypi"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Pin:
    """A distribution that a component asks for."""

    name: str
    version: str
    component: str
    index: str
    overrides: bool
    extras: tuple[str, ...] = ()
    """Normalised and sorted."""

    @property
    def name_with_extras(self) -> str:
        """Such as `ray[default]`."""
        return f"{self.name}[{','.join(self.extras)}]" if self.extras else self.name

    @property
    def requirement(self) -> str:
        """The exact requirement, as pip writes it."""
        return f"{self.name_with_extras}=={self.version}"


@dataclass(frozen=True, slots=True)
class Demand:
    """All that decides a resolution, with names normalised."""

    pins: tuple[Pin, ...]
    base: Mapping[str, str]
    """Packages of the base that stay as they are."""
    protected: frozenset[str]
    """Those of `base` that win over every requirement."""

    def pin(self, name: str) -> Pin | None:
        """Return what a component asks for under a name."""
        return next((pin for pin in self.pins if pin.name == name), None)


def demand_of(release: Release) -> Demand:
    """Collect what a release asks for.

    A component that names a package of the base replaces it, a protected one too: then the release itself wants that
    version, and protects it. Raises ManifestError for what cannot be asked.
    """
    facts = release.base.facts
    packages: dict[str, str] = {canonicalize_name(name): version for name, version in facts.packages.items()}
    pins = _unique(pin for component in release.components for pin in _pins(component))
    replaced = {pin.name for pin in pins}
    base = {name: version for name, version in sorted(packages.items()) if name not in replaced}
    protected = frozenset(canonicalize_name(name) for name in release.protected) & base.keys()
    _check_versions(base, facts.file)
    return Demand(pins, base, frozenset(protected))


def write_project(
    folder: Path, demand: Demand, python: str, indexes: Mapping[str, str], overrides: Iterable[str]
) -> None:
    """Write `pyproject.toml`, and the wheels that stand for the base, into an empty folder.

    `indexes` maps the names of indexes to addresses, which hold no password.
    """
    wheels = {name: _write_stand_in(folder, name, version) for name, version in demand.base.items()}
    given = {name: f"{name} @ {wheel.as_uri()}" for name, wheel in wheels.items()}
    needed = [*(pin.requirement for pin in demand.pins), *given.values()]
    winning = [*overrides, *(given[name] for name in sorted(demand.protected))]
    minor = ".".join(python.split(".")[:2])
    lines = [
        "[project]",
        f'name = "{PROJECT_NAME}"',
        'version = "0"',
        f'requires-python = "=={minor}.*"',
        f"dependencies = {json.dumps(needed)}",
        "[tool.uv]",
        f"override-dependencies = {json.dumps(winning)}",
        "[tool.uv.sources]",
        *(f"{pin.name} = {{ index = {json.dumps(pin.index)} }}" for pin in demand.pins if pin.index != DEFAULT_INDEX),
        *(line for name, url in indexes.items() for line in _index_table(name, url)),
    ]
    (folder / "pyproject.toml").write_text("\n".join(lines) + "\n")


def _index_table(name: str, url: str) -> tuple[str, ...]:
    """An explicit index serves only the distributions that name it, so that no other can come from there."""
    kind = "default" if name == DEFAULT_INDEX else "explicit"
    return ("[[tool.uv.index]]", f"name = {json.dumps(name)}", f"url = {json.dumps(url)}", f"{kind} = true")


def _pins(component: Component) -> Iterable[Pin]:
    if not isinstance(component.source, PipSource) or component.source.project is not None:
        return
    for name, version in component.source.distributions:
        if not _is_pep440(version):
            raise ManifestError(
                f"component {component.id}: {version!r} is no version that pip knows (PEP 440)",
                hint="give the installed version in image.yaml: `version: …` or `wheels: …`",
            )
        source = component.source
        yield Pin(canonicalize_name(name), version, component.id, source.index, source.overrides, source.extras)


def _unique(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Keep the first of equal pins, with the extras of all; two versions of one distribution cannot be installed."""
    found: dict[str, Pin] = {}
    for pin in pins:
        first = found.setdefault(pin.name, pin)
        if first.version != pin.version:
            raise ManifestError(
                f"component {first.component} asks for {first.requirement}, component {pin.component} for "
                f"{pin.requirement}",
                hint="only one version of a distribution can be in an image",
            )
        if not set(pin.extras) <= set(first.extras):
            found[pin.name] = replace(first, extras=tuple(sorted({*first.extras, *pin.extras})))
    return tuple(found.values())


def _check_versions(base: Mapping[str, str], file: str) -> None:
    for name, version in base.items():
        if not _is_pep440(version):
            raise ManifestError(
                f"the base's {name} {version!r} is no version that pip knows (PEP 440)",
                hint="write it as `pip list` in the base shows it",
                location=Location(file),
            )


def _is_pep440(version: str) -> bool:
    try:
        Version(version)
    except InvalidVersion:
        return False
    return True


def _write_stand_in(folder: Path, name: str, version: str) -> Path:
    """Write a wheel with nothing in it but its name and version (PEP 427)."""
    stem = f"{name.replace('-', '_')}-{Version(version)}"
    path = folder / f"{stem}-py3-none-any.whl"
    members = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: lj-image\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in members.items():
            wheel.writestr(zipfile.ZipInfo(f"{stem}.dist-info/{member}", _EPOCH), text)
    return path
