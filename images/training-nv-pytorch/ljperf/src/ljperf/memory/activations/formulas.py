"""What one block of a known family saves for backward, in closed form.

Counted storage by storage with saved-tensor hooks, and equal to the byte in `tests/activations`. Per token: each
RMSNorm keeps its fp32 input, its inverse root mean square, the normalised and the weighted result; attention keeps
queries, keys, values, its output and the log-sum-exp per head, how often and how wide being a release's habit; the MLP
keeps gate, its activation, up and their product. Residual additions keep nothing.
"""

from __future__ import annotations

from typing import Final

from ljperf.errors import LjperfError
from ljperf.memory.activations.habits import Habits, installed_habits
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

FAMILIES: Final = frozenset({"llama", "mistral", "qwen2", "gemma", "granite", "phi3"})
_MEASURED_ATTENTION: Final = frozenset({"sdpa", "eager"})


class NoFormulaError(LjperfError):
    """No closed form is known for this family or setup: count instead."""


def saved_bytes(shape: ModelShape, setup: TrainingSetup, habits: Habits | None = None) -> int:
    """Bytes that one block of `shape` saves for `setup.tokens` tokens; raises NoFormulaError.

    `habits` are those of the installed Transformers unless given.
    """
    if shape.family not in FAMILIES or shape.experts:
        raise NoFormulaError(f"no formula for a block of the family {shape.family}")
    attention = _attention_bytes(shape, setup, habits or installed_habits())
    size = setup.element_bytes
    if setup.compiled:
        # The partitioner recomputes pointwise work: fp32 copies of norms and one product of the MLP's width. It keeps
        # the block's input instead, whatever the norm.
        return setup.tokens * (size * (4 * shape.hidden + 3 * shape.ffn) + 8 + attention)
    per_token = 2 * norm_bytes(shape, setup) + attention + 4 * size * shape.ffn
    # Gemma weights by 1 + weight, in fp32, which is no parameter.
    return setup.tokens * per_token + (2 * 4 * shape.hidden if shape.family == "gemma" else 0)


def input_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes of `saved_bytes` that are the block's own input: what a recomputed block has anyway.

    In fp32 a norm saves its input as it is; a compiled block computes the fp32 copy again, from the input.
    """
    return checkpoint_bytes(shape, setup) if setup.compiled or setup.precision == "fp32" else 0


def is_measured(shape: ModelShape, setup: TrainingSetup) -> bool:
    """Was the formula held against counted bytes? FlashAttention 2 needs a GPU, and none was at hand.

    Compiled blocks were counted with the partitioner on a CPU; inductor's kernels on a GPU may keep something else.
    """
    return setup.attention in _MEASURED_ATTENTION and not setup.compiled


def norm_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes per token that an RMSNorm saves, with what it gives to the products after it."""
    size = setup.element_bytes
    normalised = 4 if shape.family == "gemma" else size
    return shape.hidden * (4 + normalised + size) + 4


def head_bytes(shape: ModelShape, setup: TrainingSetup, habits: Habits | None = None) -> int:
    """Bytes saved outside the blocks: log-softmax, final norm, rotary tables, token ids, labels."""
    tokens, family = setup.tokens, habits or installed_habits()
    logits = 4 * logits_kept(shape, setup, family) if setup.loss == "plain" else 0
    norm = tokens * norm_bytes(shape, setup) + (4 * shape.hidden if shape.family == "gemma" else 0)
    return logits + norm + rotary_bytes(shape, setup) + 8 * tokens + _label_bytes(setup, family) + 4


def logits_kept(shape: ModelShape, setup: TrainingSetup, habits: Habits | None = None) -> int:
    """Elements of the log-softmax that a plain loss keeps."""
    dropped = setup.micro_batch if (habits or installed_habits()).shifts_logits else 0
    return shape.vocab * (setup.tokens - dropped)


def rotary_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Cosine and sine of each position, which all blocks and sequences share."""
    return 2 * setup.element_bytes * shape.head_dim * setup.sequence


def _label_bytes(setup: TrainingSetup, habits: Habits) -> int:
    """The shifted labels: for one sequence a view, which keeps the whole row."""
    if setup.micro_batch == 1:
        return 8 * (setup.tokens + (0 if habits.shifts_logits else 1))
    return 8 * (setup.tokens - (setup.micro_batch if habits.shifts_logits else 0))


def checkpoint_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes that a recomputed block keeps: its input."""
    return setup.element_bytes * shape.hidden * setup.tokens


def _attention_bytes(shape: ModelShape, setup: TrainingSetup, habits: Habits) -> int:
    """Bytes per token that attention saves, from the rotated queries to the output projection's input."""
    size, queries = setup.element_bytes, shape.query_width
    if setup.attention == "flash_attention_2":
        # It reads keys and values of fewer heads as they are, and its output is contiguous. Derived, not measured.
        return size * (2 * queries + 2 * shape.kv_width) + 4 * shape.heads
    if setup.attention == "eager":
        keys, values = _read_by_eager(shape, setup)
        return size * (2 * queries + keys + values) + _score_bytes(setup) * shape.heads * setup.sequence
    return size * _read_by_sdpa(shape, setup, habits) + 4 * shape.heads


def _score_bytes(setup: TrainingSetup) -> int:
    """Bytes per score: softmax in fp32, and its cast; fp32 has none, but a compiled block keeps a second one."""
    if setup.precision == "fp32":
        return 8 if setup.compiled else 4
    return 6


def _read_by_sdpa(shape: ModelShape, setup: TrainingSetup, habits: Habits) -> int:
    """Widths of queries, keys, values, output, and of the output's copy for the projection, together."""
    queries, narrow = shape.query_width, shape.kv_width
    pair = 2 * queries if habits.repeats_heads else 2 * narrow
    if habits.copies_heads:
        return 3 * queries + pair
    if shape.family == "phi3":
        # A view of the values keeps queries, keys and values alive; the rotated queries are contiguous.
        return 3 * queries + narrow + (queries + 2 * narrow)
    return 2 * queries + pair


def _read_by_eager(shape: ModelShape, setup: TrainingSetup) -> tuple[int, int]:
    """Widths of what the products hold of keys and values: copies for all query heads, or views where those will do.

    Heads of one sequence need no copy if there is one of them to repeat, or none is repeated. Phi-3 computes queries,
    keys and values in one tensor, all of which a view of the values keeps alive.
    """
    if setup.micro_batch > 1 or shape.kv_heads not in (1, shape.heads):
        return shape.query_width, shape.query_width
    fused = shape.query_width + 2 * shape.kv_width
    return shape.kv_width, fused if shape.family == "phi3" else shape.kv_width
