"""The shape of a model that somebody else made: read from its Transformers config."""

from __future__ import annotations

from typing import Any

from ljperf.errors import LjperfError
from ljperf.models.shape import ModelShape


class UnknownConfigError(LjperfError):
    """The config does not say what a decoder's shape needs."""


def shape_of(config: Any) -> ModelShape:
    """The shape that a Transformers config of a decoder tells; nothing is imported for it.

    A config of several parts (text beside vision) is read at its text part. Raises UnknownConfigError, which names what
    is missing.
    """
    text = getattr(config, "text_config", None) or config
    heads, hidden = _number(text, "num_attention_heads"), _number(text, "hidden_size")
    experts = _first(text, "num_local_experts", "num_experts", "n_routed_experts")
    return ModelShape(
        name=str(getattr(config, "name_or_path", "") or getattr(text, "model_type", "model")),
        family=str(getattr(text, "model_type", "")),
        hidden=hidden,
        layers=_number(text, "num_hidden_layers"),
        heads=heads,
        kv_heads=_first(text, "num_key_value_heads") or heads,
        head_dim=_first(text, "head_dim") or hidden // heads,
        ffn=(_first(text, "moe_intermediate_size") if experts else 0) or _number(text, "intermediate_size"),
        vocab=_number(text, "vocab_size"),
        max_positions=_number(text, "max_position_embeddings"),
        tied=bool(getattr(config, "tie_word_embeddings", False)),
        qkv_bias=str(getattr(text, "model_type", "")) == "qwen2" or bool(getattr(text, "attention_bias", False)),
        experts=experts,
        experts_per_token=_first(text, "num_experts_per_tok") if experts else 0,
    )


def _number(config: Any, name: str) -> int:
    value = getattr(config, name, None)
    if not isinstance(value, int) or value < 1:
        raise UnknownConfigError(
            f"the config of {type(config).__name__} does not say {name}",
            hint="only decoders like Llama's can be planned",
        )
    return value


def _first(config: Any, *names: str) -> int:
    """The first of several names that is a number; 0 without one."""
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), 0)
