"""Warnings at `deepspeed.initialize`: the config that reaches DeepSpeed, and a model built before `zero.Init`.

The hook hands the freshly imported `deepspeed` in. Whatever happens here, the training goes on as without it.
"""

from __future__ import annotations

import base64
import functools
import inspect
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ljperf.dsconfig.check import findings
from ljperf.dsconfig.finding import Finding
from ljperf.dsconfig.reading import Reading

log = logging.getLogger("ljperf")
_said: set[str] = set()


def patch(deepspeed: ModuleType) -> None:
    """Let `deepspeed.initialize` warn before it begins; calling it twice on one module changes nothing more."""
    original = deepspeed.initialize
    if getattr(original, "ljperf_warns", False):
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(*args: Any, **kwargs: Any) -> Any:
        try:
            warn(signature.bind(*args, **kwargs).arguments)
        except Exception as error:  # a warning must never end a training
            log.debug("ljperf: the DeepSpeed config was not checked: %r", error)
        return original(*args, **kwargs)

    initialize.ljperf_warns = True  # type: ignore[attr-defined]
    deepspeed.initialize = initialize  # type: ignore[attr-defined]


def warn(arguments: Mapping[str, Any]) -> None:
    """Log every finding about these arguments of `deepspeed.initialize`, once, on rank 0."""
    if os.environ.get("RANK", "0") != "0":
        return
    config, model = config_of(arguments), arguments.get("model")
    if config is None:
        return
    ranks = None if arguments.get("mpu") else _number(os.environ.get("WORLD_SIZE"))
    # What arrives here is final: Transformers has filled in what it fills in.
    found = findings(config, transformers=False, world_size=ranks, hidden=_hidden(model))
    for line in (*map(_line, found), *built_too_early(config, model)):
        if line not in _said:
            _said.add(line)
            log.warning("ljperf: %s", line)


def _line(finding: Finding) -> str:
    where = f"DeepSpeed config {finding.pointer}" if finding.pointer else "DeepSpeed config"
    return f"{where}: {finding.message}" + (f" ({finding.hint})" if finding.hint else "")


def config_of(arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The config wherever DeepSpeed looks for it: argument, older argument, or args.deepspeed_config."""
    given = arguments.get("config") or arguments.get("config_params")
    given = given or getattr(arguments.get("args"), "deepspeed_config", None)
    if isinstance(given, Mapping):
        return given
    return _from_text(given) if isinstance(given, str | Path) and str(given) else None


def _from_text(given: str | Path) -> Mapping[str, Any]:
    """A file, or the config itself in base64, as DeepSpeed takes both."""
    from ljperf.dsconfig.source import parse, read

    if os.path.exists(given):  # noqa: PTH110  Path.exists raises on a text too long for a name, as base64 is
        return read(Path(given), strict_json=False).config
    return parse(base64.urlsafe_b64decode(str(given)).decode(), strict_json=False).config


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _hidden(model: Any) -> int | None:
    """The width that Transformers' config of the model names."""
    config = getattr(model, "config", None)
    for holder in (config, getattr(config, "text_config", None)):
        hidden = getattr(holder, "hidden_size", None)
        if isinstance(hidden, int):
            return hidden
    return None


def built_too_early(config: Mapping[str, Any], model: Any) -> Iterator[str]:
    """Stage 3, a model built outside `zero.Init`, and torch's own linear: gathered weights stay until backward.

    Autograd keeps the transposed view of each weight, and so its whole gathered storage; `zero.Init` would have put
    DeepSpeed's linear, which keeps the parameter itself, in the place of torch's (for the whole process).
    """
    reading = Reading(config, transformers=False)
    if reading.stage != 3 or model is None or linear_is_deepspeed():
        return
    if any(hasattr(parameter, "ds_id") for parameter in model.parameters()):
        return  # built under zero.Init with memory_efficient_linear off, which was a choice
    halved = any(reading.enabled(name) for name in ("bf16", "bfloat16", "fp16"))  # DeepSpeed converts it after this
    size = linear_bytes(model, 2 if halved else None)
    if size:
        advice = (
            "build it under deepspeed.zero.Init; with Transformers create TrainingArguments(deepspeed=...) first, "
            "then the model by from_pretrained or from_config"
        )
        kept = (
            f"layers that are neither recomputed nor compiled keep gathered weights until backward, up to {_size(size)}"
        )
        yield f"the model was built before zero.Init: {kept} ({advice})"


def linear_is_deepspeed() -> bool:
    """Has `zero.Init` put DeepSpeed's linear in place of torch's?"""
    functional = sys.modules["torch.nn.functional"]
    wrapped = getattr(sys.modules.get("deepspeed.runtime.zero.linear"), "zero3_linear_wrap", None)
    return wrapped is not None and functional.linear is wrapped


def linear_bytes(model: Any, item_bytes: int | None) -> int:
    """Bytes of all Linear weights, each once; None: in their present type."""
    linear = sys.modules["torch"].nn.Linear
    weights = {id(module.weight): module.weight for module in model.modules() if isinstance(module, linear)}
    return sum(weight.numel() * (item_bytes or weight.element_size()) for weight in weights.values())


def _size(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"
