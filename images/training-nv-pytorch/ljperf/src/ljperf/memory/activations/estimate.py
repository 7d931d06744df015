"""A block's activations by formula, and by counting where no formula is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from ljperf.memory.activations.formulas import (
    NoFormulaError,
    checkpoint_bytes,
    head_bytes,
    input_bytes,
    is_measured,
    saved_bytes,
)
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

How = Literal["formula", "counted"]
_SMALL: Final = 128
"""Real tensors are counted with so long a sequence, which tokens' number scales; experts differ by their routing."""


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes that one device's forward keeps."""

    per_layer: int
    per_recomputed_layer: int
    head: int
    """Outside the blocks: the loss over plain logits, the final norm, what all blocks share."""
    recompute_working_set: int
    """What a recomputed block's forward saves beside the input that it had kept, until its backward frees it.

    Gradients that backward makes meanwhile are not in it: they are as large in a kept block.
    """
    exact: bool
    how: How


def activations_of(shape: ModelShape, setup: TrainingSetup) -> Activations:
    """Bytes of a block and outside of it; imports PyTorch for families without a formula, which raises CountError."""
    try:
        layer, own_input = saved_bytes(shape, setup), input_bytes(shape, setup)
        exact, how = is_measured(shape, setup), _FORMULA
    except NoFormulaError:
        layer, own_input, exact = _counted(shape, setup)
        how = _COUNTED
    return Activations(
        per_layer=layer,
        per_recomputed_layer=checkpoint_bytes(shape, setup),
        head=head_bytes(shape, setup),
        recompute_working_set=layer - own_input,
        exact=exact,
        how=how,
    )


_FORMULA: Final[How] = "formula"
_COUNTED: Final[How] = "counted"


def _counted(shape: ModelShape, setup: TrainingSetup) -> tuple[int, int, bool]:
    """Count one block in eager mode, and its input if that is saved; a compiled one keeps at most that."""
    from ljperf.memory.activations.counting import counted, counted_with_input

    if not shape.experts:
        return *counted_with_input(shape, setup), not setup.compiled
    # Which expert gets which token is decided by values, so tensors are real, and few.
    small = replace(setup, micro_batch=1, sequence=min(_SMALL, setup.sequence))
    narrow = _narrowed(shape)
    routed = counted(narrow, small, fake=False) / small.tokens
    dense_narrow = saved_bytes(replace(narrow, family="llama", experts=0), small) / small.tokens
    dense = saved_bytes(replace(shape, family="llama", experts=0), setup)
    experts = round((routed - dense_narrow) * setup.tokens * shape.ffn / narrow.ffn)
    return dense + experts, input_bytes(shape, setup), False


def _narrowed(shape: ModelShape) -> ModelShape:
    """The same routing with matrices that can be made at once: all widths are an eighth, or less."""
    by = max(1, shape.hidden // 256)
    return replace(
        shape, hidden=shape.hidden // by, ffn=shape.ffn // by, head_dim=max(2, shape.head_dim // by // 2 * 2)
    )
