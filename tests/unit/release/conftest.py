from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile, EndpointsConfig

IMAGES = Path(__file__).parents[3] / "images"


@pytest.fixture
def config_with(tmp_path: Path) -> Callable[..., Config]:
    """Return a function from rewriting rules to a config."""

    def make(**rewrite: str) -> Config:
        values = ConfigFile(endpoints=EndpointsConfig(rewrite=rewrite))
        return Config(file=None, values=values, cache_dir=tmp_path)

    return make


@pytest.fixture
def config(config_with: Callable[..., Config]) -> Config:
    return config_with()


@pytest.fixture
def release(config: Config) -> Release:
    """Return the real 25.02, as its vendor builds it."""
    return resolve(Catalog(IMAGES), config, "25.02", variant="serverless", only_configured=False)
