"""The base of all models of files: unknown keys and silent conversions are errors."""

from __future__ import annotations

import os

# Pydantic looks for plugins by reading the metadata of every installed distribution; we have none, and start-up counts.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A frozen model that takes only what is written down for it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
