"""One block's backward, step by step: what is alive beside the states, and how many gradients exist already.

The largest moment is not where most is saved: backward first allocates two gradients as wide as the MLP, eager
attention allocates fp32 gradients of its scores, and an RMSNorm several fp32 tensors of the hidden size. Found with
PyTorch's MemTracker, against which `tests/memory` holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ljperf.memory.states import autocasts, stream_bytes
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a block's backward."""

    alive: int
    """Bytes of activations and their gradients."""
    gradients: int
    """Elements of the block's parameter gradients that exist by then."""
    module: int
    """Elements of the weights in use."""


def moments_of(shape: ModelShape, setup: TrainingSetup, saved: int) -> tuple[Moment, ...]:
    """The moments of a block's backward that can be its peak, in order; the block saved `saved` bytes in forward.

    The gradient of the block's output is alive in all of them.
    """
    if shape.experts:
        return _routed(shape, setup, saved)
    return (*_mlp(shape, setup, saved), *_attention(shape, setup, saved), _first_norm(shape, setup))


def _mlp(shape: ModelShape, setup: TrainingSetup, saved: int) -> tuple[Moment, ...]:
    narrow, wide = _widths(shape, setup)
    weight = shape.hidden * shape.ffn
    freed = (3 if setup.compiled else 4) * wide
    output = 0 if setup.compiled else narrow  # what up and gate had saved
    return (
        Moment(saved + narrow + wide, weight, weight),  # down: its input's gradient
        Moment(saved + narrow + (3 if setup.compiled else 2) * wide, weight, weight),  # product: those of both factors
        Moment(saved + 2 * narrow - wide, 2 * weight, weight),  # up
        Moment(saved + 2 * narrow + 2 * wide - freed, 3 * weight, weight),  # gate
        Moment(
            saved + narrow - freed - output + norm_backward(shape, setup), 3 * weight, shape.hidden
        ),  # the second norm
    )


def _attention(shape: ModelShape, setup: TrainingSetup, saved: int) -> tuple[Moment, ...]:
    narrow, wide = _widths(shape, setup)
    query = setup.element_bytes * shape.query_width * setup.tokens
    before = saved + narrow - (3 if setup.compiled else 4) * wide - saved_by_norm(shape, setup)
    weights, module = 3 * shape.hidden * shape.ffn, shape.hidden * shape.query_width
    kernel = Moment(before + 3 * query, weights + module, module)
    if setup.attention != "eager":
        return (kernel,)
    # Softmax's backward in fp32: the scores' gradient twice, once their copy in the compute type is freed. The values'
    # gradient takes their place, and the output projection's input is gone.
    scores = shape.heads * setup.sequence * setup.tokens
    freed = 2 * scores if setup.element_bytes == 2 else 0
    return kernel, Moment(before - query + 8 * scores - freed, weights + module, module)


def _first_norm(shape: ModelShape, setup: TrainingSetup) -> Moment:
    """The end of the block: all of its gradients, and the first norm's backward."""
    narrow, _ = _widths(shape, setup)
    own = saved_by_norm(shape, setup) - (0 if setup.compiled else narrow)  # its output is freed by then
    matrices = 3 * shape.ffn + 2 * shape.query_width + 2 * shape.kv_width
    alive = own + narrow + norm_backward(shape, setup)
    return Moment(alive, shape.hidden * (matrices + 2), shape.hidden)


def _widths(shape: ModelShape, setup: TrainingSetup) -> tuple[int, int]:
    """Bytes of a tensor of the hidden width, and of one of the MLP's."""
    return stream_bytes(setup) * shape.hidden * setup.tokens, setup.element_bytes * shape.ffn * setup.tokens


def _routed(shape: ModelShape, setup: TrainingSetup, saved: int) -> tuple[Moment, ...]:
    """Experts run one after the other on their tokens: two gradients of the widest one, if tokens are even."""
    narrow, _ = _widths(shape, setup)
    share = -(-setup.tokens * max(shape.experts_per_token, 1) // shape.experts)
    wide = setup.element_bytes * shape.ffn * share
    weight = shape.hidden * shape.ffn
    return (
        Moment(saved + 2 * narrow + 2 * wide, weight, weight),
        Moment(saved + 2 * narrow + wide, 3 * weight * shape.experts, weight),
    )


def saved_by_norm(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes that an RMSNorm saves: its input in fp32, one fp32 factor per token, the normalised input, its output."""
    size = setup.element_bytes
    if setup.compiled:
        return setup.tokens * (4 * shape.hidden + 4)
    if autocasts(setup):  # fp32 input and normalised input, and a cast for each of two or three products
        return setup.tokens * (12 * shape.hidden + 4)
    return setup.tokens * ((4 + 2 * size) * shape.hidden + 4)


def norm_backward(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes of the tensors while an RMSNorm's mean of squares is differentiated: counted, not derived."""
    return (12 if stream_bytes(setup) == 4 else 18) * shape.hidden * setup.tokens
