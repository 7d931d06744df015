"""Models known by name: one YAML file each in `configs/`."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml

from ljperf.errors import UnknownModelError
from ljperf.models.shape import ModelShape

CLOSE = 0.4  # llama-8b is meant for llama3-8b


def model_named(name: str) -> ModelShape:
    """The shape of a model in the catalogue.

    Raises UnknownModelError with the closest names.
    """
    path = _configs().joinpath(f"{name}.yaml")
    if name not in model_names():
        close = get_close_matches(name.lower(), model_names(), n=3, cutoff=CLOSE) or model_names()
        raise UnknownModelError(f"no model is called {name!r}", hint=f"perhaps {' or '.join(close)}")
    return ModelShape(name=name, **yaml.safe_load(path.read_text(encoding="utf-8")))


@cache
def model_names() -> tuple[str, ...]:
    """All names, sorted."""
    names = (entry.name for entry in _configs().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def _configs() -> Traversable:
    return files("ljperf.models").joinpath("configs")
