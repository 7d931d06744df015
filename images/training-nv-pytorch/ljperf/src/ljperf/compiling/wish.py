"""Who wants compilation, and of what: the environment of a hand loop, or Accelerate's state."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ljperf.startup import asked


@dataclass(frozen=True, slots=True)
class Wish:
    """Compile, with what, because of whom."""

    by: Literal["LJ_COMPILE", "accelerate"]
    backend: str = "inductor"
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of torch.compile."""


def wish_of(environ: Mapping[str, str] = os.environ) -> Wish | None:
    """Ask Accelerate's state (Trainer and TrainingArguments end there), then the environment; None: nobody wants it."""
    plugin = dynamo_plugin()
    if plugin is not None:
        arguments = plugin.to_kwargs()
        backend = str(arguments.pop("backend"))
        return Wish("accelerate", backend, {key: arguments[key] for key in ("mode", "options") if arguments.get(key)})
    if asked(environ, "LJ_COMPILE"):
        return Wish("LJ_COMPILE", environ.get("LJ_COMPILE_BACKEND") or "inductor")
    return None


def dynamo_plugin() -> Any:
    """Accelerate's plugin of this process, if there is one and it has a backend."""
    accelerate = sys.modules.get("accelerate.state")
    state = getattr(getattr(accelerate, "AcceleratorState", None), "_shared_state", {})
    plugin = state.get("dynamo_plugin")
    backend = getattr(getattr(plugin, "backend", None), "value", "NO")
    return None if str(backend).upper() == "NO" else plugin


def stage_of(config: object) -> int | None:
    """The ZeRO stage of a DeepSpeed config (a mapping, or a JSON file's path); None if it cannot be read."""
    section = (_read(config) or {}).get("zero_optimization", {})
    stage = section.get("stage", 0) if isinstance(section, Mapping) else int(section is True)
    return stage if isinstance(stage, int) else None


def uses_deepcompile(config: object) -> bool:
    """Does the config ask for DeepSpeed's own compiler passes?"""
    section = (_read(config) or {}).get("compile", {})
    return isinstance(section, Mapping) and bool(section.get("deepcompile"))


def _read(config: object) -> Mapping[str, Any] | None:
    if isinstance(config, Mapping):
        return config
    if not isinstance(config, (str, os.PathLike)):
        return None
    try:
        read = json.loads(Path(config).read_text())
    except (OSError, ValueError):
        return None  # DeepSpeed, which knows more forms, will say what is wrong with it
    return read if isinstance(read, Mapping) else None
