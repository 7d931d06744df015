"""Transformers' SDPA call, so that it can be in a graph whose sequence length is a variable."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any


def keep_causal_a_constant() -> None:
    """Wrap Transformers' "sdpa" attention, once per process, if Transformers is loaded.

    Up to at least 4.48 it hands on `mask is None and length > 1`, which for a variable length is no bool, and SDPA
    refuses it. What is computed stays the same.
    """
    transformers = sys.modules.get("transformers.modeling_utils")
    functions = getattr(transformers, "ALL_ATTENTION_FUNCTIONS", None)  # 4.48 and later
    if functions is None:
        return
    sdpa = functions["sdpa"]
    if not hasattr(sdpa, "ljperf_wrapped") and "is_causal" in inspect.signature(sdpa).parameters:
        functions["sdpa"] = _with_constant(sdpa)


def _with_constant(sdpa: Callable[..., Any]) -> Callable[..., Any]:
    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, *args: Any, **kwargs: Any) -> Any:
        # A branch, not an expression: the tracer decides it once, since lengths of 0 and 1 have graphs of their own.
        open_question = not args and kwargs.get("is_causal") is None and attention_mask is None and _is_causal(module)
        if open_question and query.shape[2] > 1:
            kwargs["is_causal"] = True
        return sdpa(module, query, key, value, attention_mask, *args, **kwargs)

    functools.update_wrapper(attention, sdpa)
    attention.ljperf_wrapped = True  # type: ignore[attr-defined]
    return attention


def _is_causal(module: Any) -> bool:
    return bool(getattr(module, "is_causal", True))
