"""The model itself, with random weights, from a shape: nothing is downloaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ljperf.errors import LjperfError, UnknownModelError
from ljperf.models.limits import check_shape
from ljperf.models.parameters import Parameters
from ljperf.models.shape import ModelShape

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PretrainedConfig

    from ljperf.setup import Attention, Precision

# Beyond the common names: what makes a family's model as large as its shape, and its attention causal over all tokens.
FAMILY_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "mistral": {"sliding_window": None},
    "mixtral": {"sliding_window": None},
    "phi3": {"sliding_window": None, "pad_token_id": None},
    "gemma": {"pad_token_id": None},
    "gemma2": {"pad_token_id": None},
}


class MissingFrameworkError(LjperfError):
    """PyTorch or Transformers is not installed."""


def transformers_config(shape: ModelShape, attention: Attention = "sdpa") -> PretrainedConfig:
    """Transformers' config of `shape`, without a key-value cache.

    Raises ImpossibleShapeError, UnknownModelError for a family that this Transformers lacks, MissingFrameworkError.
    """
    check_shape(shape)
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise MissingFrameworkError(str(error), hint="run it in the image, or install transformers") from error
    try:
        config: PretrainedConfig = AutoConfig.for_model(shape.family, **_fields(shape), use_cache=False)
    except ValueError as error:
        raise UnknownModelError(
            f"this Transformers has no family {shape.family!r}", hint="a newer release may have it", location=shape.name
        ) from error
    config._attn_implementation = attention
    return config


def dtype_of(precision: Precision) -> torch.dtype:
    """As torch names it."""
    import torch

    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[precision]


def build(shape: ModelShape, *, dtype: torch.dtype, attention: Attention = "sdpa") -> nn.Module:
    """A causal language model with random weights of `dtype`, on the device that is torch's default.

    Raises what `transformers_config` raises.
    """
    config = transformers_config(shape, attention)
    from transformers import AutoModelForCausalLM

    with _default_dtype(dtype):
        model: nn.Module = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return model


def build_block(shape: ModelShape, *, dtype: torch.dtype, attention: Attention = "sdpa") -> nn.Module:
    """A model of one block and the least vocabulary: for counting what the block does.

    Raises what `transformers_config` raises.
    """
    from dataclasses import replace

    return build(replace(shape, layers=1, vocab=8), dtype=dtype, attention=attention)


def counted_parameters(shape: ModelShape) -> Parameters:
    """Count the parameters of a model built on the meta device.

    Raises what `transformers_config` raises, and UnknownModelError if its blocks are not in `model.layers`.
    """
    import torch

    with torch.device("meta"):
        model = build(shape, dtype=torch.bfloat16)
    block = _first_block(model, shape)
    layer = _elements(block)
    embedding = _elements(model.get_input_embeddings())
    total = _elements(model)
    head = 0 if shape.tied else _elements(model.get_output_embeddings())
    linear = sum(parameter.numel() for parameter in block.parameters() if parameter.dim() > 1)
    return Parameters(total, embedding, layer, head, total - embedding - head - shape.layers * layer, linear)


def _first_block(model: nn.Module, shape: ModelShape) -> nn.Module:
    try:
        block = model.get_submodule("model.layers.0")
    except AttributeError as error:
        raise UnknownModelError(
            f"the blocks of family {shape.family!r} are not where a decoder's are (model.layers)",
            hint="families like llama, mistral, qwen2, gemma, phi3 are",
            location=shape.name,
        ) from error
    return block


def _elements(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _fields(shape: ModelShape) -> dict[str, Any]:
    """The shape in the words of Transformers' configs."""
    fields: dict[str, Any] = {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.max_positions,
        "tie_word_embeddings": shape.tied,
    }
    if shape.experts:
        fields |= {"num_local_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token}
    return fields | FAMILY_OPTIONS.get(shape.family, {})


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """New parameters are of `dtype`: casting a built model would hold it twice."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
