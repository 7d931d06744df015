"""What the loss over all logits takes: the term that recomputing layers cannot lower.

Transformers' `ForCausalLMLoss` makes fp32 logits and keeps their log-softmax; before 4.49 it shifts the logits by one
position (a copy if there is more than one sequence), later the labels. Backward adds two more fp32 tensors of that
size. A chunked loss computes the head's gradients in the forward pass, chunk by chunk, and keeps only those.
"""

from __future__ import annotations

from dataclasses import dataclass

from ljperf.memory.activations.formulas import logits_kept
from ljperf.memory.states import autocasts, stream_bytes
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

CHUNK_TOKENS = 1024  # the benchmark's; Liger's are of a similar size


@dataclass(frozen=True, slots=True)
class LossBytes:
    """Bytes by moment of the loss."""

    saved: int
    """Log-softmax, kept for backward."""
    forward: int
    """On top of it when the forward ends."""
    backward: int
    """On top of it when the backward begins."""
    head_backward: int
    """Gradients of logits and hidden states while the head's own gradient is computed."""
    early_gradient: int
    """The head's whole gradient where it exists before backward begins."""
    shared: int
    """Rotary tables and token ids: alive until the last block's backward."""


def loss_bytes(shape: ModelShape, setup: TrainingSetup) -> LossBytes:
    """Bytes of the loss: 12 per vocabulary entry and token, 14 if several sequences' logits are shifted, in bf16."""
    size, tokens = setup.element_bytes, setup.tokens
    shared = shared_bytes(shape, setup, stream_bytes(setup))
    if setup.loss != "plain":
        return _chunked(shape, setup, shared)
    kept, whole = logits_kept(shape, setup), shape.vocab * tokens
    shifted = kept if kept < whole and setup.micro_batch > 1 else 0
    saved = 4 * kept
    # Forward: logits, in fp32 too unless they are, and shifted if that copies. Backward: two gradients.
    forward = 4 * whole + (size * whole if size == 2 else 0) + 4 * shifted
    forward += _last_hidden(shape, setup)
    head_backward = size * whole + size * shape.hidden * tokens
    return LossBytes(saved, forward, 8 * kept, head_backward, 0, shared)


def shared_bytes(shape: ModelShape, setup: TrainingSetup, size: int) -> int:
    """Cosine and sine in the residual stream's type, and two vectors of int64 per token."""
    return 2 * size * shape.head_dim * setup.sequence + 16 * setup.tokens


def _last_hidden(shape: ModelShape, setup: TrainingSetup) -> int:
    """Under autocast the head saves a cast, and the fp32 hidden states live beside it until the forward ends."""
    return 4 * shape.hidden * setup.tokens if autocasts(setup) else 0


def _chunked(shape: ModelShape, setup: TrainingSetup, shared: int) -> LossBytes:
    size = setup.element_bytes
    chunk = min(CHUNK_TOKENS, setup.tokens - setup.micro_batch)
    second = min(CHUNK_TOKENS, setup.tokens - setup.micro_batch - chunk)
    # Two fp32 tensors per chunk, the second chunk's beside one and its bf16 gradient of the first.
    entries = max(8 * chunk, (6 if size == 2 else 4) * chunk + 8 * second)
    hidden = size * shape.hidden * setup.tokens * (2 if setup.micro_batch > 1 else 1)
    gradient = size * shape.vocab * shape.hidden
    forward = entries * shape.vocab + hidden + _last_hidden(shape, setup)
    return LossBytes(0, forward, hidden, hidden, gradient, shared)
