"""The base of all models of files: unknown keys and silent conversions are errors."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict


class _NoPlugins(ModuleType):
    """Stands for pydantic's search for plugins, which reads the metadata of every installed distribution.

    We have no plugins, and start-up counts: importing that search costs a fourteenth of `lj-image render`, even when
    PYDANTIC_DISABLE_PLUGINS is set. Should pydantic rename it, this stands for nothing and does no harm.
    """

    def get_plugins(self) -> tuple[Any, ...]:
        return ()


sys.modules.setdefault("pydantic.plugin._loader", _NoPlugins("pydantic.plugin._loader"))


class Strict(BaseModel):
    """A frozen model that takes only what is written down for it."""

    # Built when first used: a command needs a few of the models, and inner ones are built within outer ones.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)
