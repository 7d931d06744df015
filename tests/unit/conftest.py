"""Fixtures of the unit tests: small catalogs written as a user would write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.config import Config, ConfigFile
from samples.tiny import BASE, IMAGE, RELEASE


@pytest.fixture
def write_catalog(tmp_path: Path) -> Callable[..., Catalog]:
    """Return a function that writes a catalog; each argument replaces one of its files."""

    def write(image: str = IMAGE, base: str = BASE, **releases: str) -> Catalog:
        folder = tmp_path / "images" / "tiny"
        for name, text in {"r25_02": RELEASE, **releases}.items():
            _write(folder / "releases" / f"{name.removeprefix('r').replace('_', '.')}.yaml", text)
        _write(folder / "image.yaml", image)
        _write(folder / "bases" / "base.yaml", base)
        return Catalog(tmp_path / "images")

    return write


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Return a config that says nothing."""
    return Config(file=None, values=ConfigFile(), cache_dir=tmp_path / "cache")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
