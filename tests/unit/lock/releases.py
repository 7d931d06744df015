"""Releases made by hand: what the lock sees of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lj_image.catalog.release import (
    ArchiveSource,
    Base,
    BaseFacts,
    Component,
    ComponentSource,
    Endpoints,
    PipSource,
    Platform,
    Release,
    RunConfig,
)


def pip(
    *distributions: tuple[str, str], index: str = "pypi", overrides: bool = False, extras: tuple[str, ...] = ()
) -> PipSource:
    return PipSource(distributions, index, None, overrides, "metadata", (), extras)


def archive(file: str, location: str = "vendor") -> ArchiveSource:
    return ArchiveSource(file, location, "/opt/accl", 0, None, "none")


def release(
    *,
    base: Mapping[str, str] | None = None,
    protected: tuple[str, ...] = (),
    folder: Path = Path("images/tiny"),
    architecture: str = "amd64",
    versions: Mapping[str, str] | None = None,
    **components: ComponentSource,
) -> Release:
    """Return 25.02 in variant open; a keyword `accl_n` is the component `accl-n`."""
    facts = BaseFacts("base", "3.11", "2.36", "/site", dict(base or {}), {}, True, "images/tiny/bases/base.yaml")
    return Release(
        image="tiny",
        title="tiny",
        description="",
        name="25.02",
        variant="open",
        variant_reason="",
        tag="25.02-open",
        platform=Platform(architecture=architecture),
        base=Base("example.com/base:1", None, facts),
        components=tuple(
            _component(name.replace("_", "-"), source, versions or {}) for name, source in components.items()
        ),
        protected=protected,
        expected_complaints={},
        endpoints=Endpoints("example.com", "{region}.example.com", (), "tiny"),
        config=RunConfig(),
        folder=folder,
    )


def _component(name: str, source: ComponentSource, versions: Mapping[str, str]) -> Component:
    version = source.distributions[0][1] if isinstance(source, PipSource) else "1"
    return Component(name, name, versions.get(name, version), source)
