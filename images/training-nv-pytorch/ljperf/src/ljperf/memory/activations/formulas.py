"""What one block of a known family saves for backward, in closed form.

Counted storage by storage with saved-tensor hooks, and equal to the byte in `tests/activations`. Per token: each
RMSNorm keeps its fp32 input, its inverse root mean square, the normalised and the weighted result; attention keeps
queries, keys and values repeated to all query heads, its output twice (as computed, and contiguous for the output
projection) and the log-sum-exp per head; the MLP keeps gate, its activation, up and their product. Residual additions
keep nothing.
"""

from __future__ import annotations

from typing import Final

from ljperf.errors import LjperfError
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

FAMILIES: Final = frozenset({"llama", "mistral", "qwen2", "gemma", "phi3"})
_MEASURED_ATTENTION: Final = frozenset({"sdpa", "eager"})


class NoFormulaError(LjperfError):
    """No closed form is known for this family or setup: count instead."""


def saved_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes that one block of `shape` saves for `setup.tokens` tokens; raises NoFormulaError."""
    if shape.family not in FAMILIES or shape.experts:
        raise NoFormulaError(f"no formula for a block of the family {shape.family}")
    constant = 0
    if setup.compiled:
        if shape.family in ("gemma", "phi3"):
            raise NoFormulaError(f"no formula for a compiled block of the family {shape.family}")
        per_token = _compiled_per_token(shape, setup)
    else:
        per_token = 2 * norm_bytes(shape, setup) + _attention_bytes(shape, setup) + 4 * size_of(setup) * shape.ffn
        # Gemma weights by 1 + weight, in fp32, which is no parameter.
        constant = 2 * 4 * shape.hidden if shape.family == "gemma" else 0
    return setup.tokens * per_token + constant


def is_measured(shape: ModelShape, setup: TrainingSetup) -> bool:
    """Was the formula held against counted bytes for this setup? FlashAttention 2 needs a GPU, and none was at hand."""
    return setup.attention in _MEASURED_ATTENTION and not (setup.compiled and setup.precision == "fp32")


def norm_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes per token that an RMSNorm saves, with what it gives to the products after it."""
    size = size_of(setup)
    normalised = 4 if shape.family == "gemma" else size
    return shape.hidden * (4 + normalised + size) + 4


def head_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes saved outside the blocks: log-softmax, final norm, rotary tables, token and position ids."""
    tokens = setup.tokens
    logits = 4 * shape.vocab * (tokens - setup.micro_batch) if setup.loss == "plain" else 0
    rotary = 2 * size_of(setup) * shape.head_dim
    return logits + tokens * (norm_bytes(shape, setup) + rotary + 16) + 4


def checkpoint_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes that a recomputed block keeps: its input."""
    return size_of(setup) * shape.hidden * setup.tokens


def size_of(setup: TrainingSetup) -> int:
    """Bytes of an element of activations."""
    return 4 if setup.precision == "fp32" else 2


def _attention_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    size, queries = size_of(setup), shape.query_width
    if setup.attention == "flash_attention_2":
        # It reads keys and values of fewer heads as they are, and its output is contiguous. Derived, not measured.
        return size * (2 * queries + 2 * shape.kv_width) + 4 * shape.heads
    if setup.attention == "eager":
        scores = 4 + (2 if size == 2 else 0)  # softmax in fp32, and its cast
        keys, values = _read_by_eager(shape, setup)
        return size * (2 * queries + keys + values) + scores * shape.heads * setup.sequence
    return 5 * size * queries + 4 * shape.heads


def _read_by_eager(shape: ModelShape, setup: TrainingSetup) -> tuple[int, int]:
    """Widths of what the products hold of keys and values: copies for all query heads, or views where those will do.

    Heads of one sequence need no copy if there is one of them to repeat, or none is repeated. Phi-3 computes queries,
    keys and values in one tensor, all of which a view of the values keeps alive.
    """
    if setup.micro_batch > 1 or shape.kv_heads not in (1, shape.heads):
        return shape.query_width, shape.query_width
    fused = shape.query_width + 2 * shape.kv_width
    return shape.kv_width, fused if shape.family == "phi3" else shape.kv_width


def _compiled_per_token(shape: ModelShape, setup: TrainingSetup) -> int:
    """The partitioner recomputes pointwise work: fp32 copies of norms and one product of the MLP's width."""
    size = size_of(setup)
    if setup.attention == "eager":
        raise NoFormulaError("no formula for a compiled block with eager attention")
    return size * (4 * shape.hidden + 3 * shape.ffn) + _attention_bytes(shape, setup) + 8
