"""What the loss over all logits takes: the term that recomputing layers cannot lower.

Transformers' `ForCausalLMLoss` makes fp32 logits, shifts them by one position (a copy if there is more than one
sequence), and keeps their log-softmax; backward adds two more fp32 tensors of that size. A chunked loss computes the
head's gradients in the forward pass, chunk by chunk, and keeps only those.
"""

from __future__ import annotations

from dataclasses import dataclass

from ljperf.memory.states import element_bytes
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

CHUNK_TOKENS = 1024  # the benchmark's; Liger's are of a similar size


@dataclass(frozen=True, slots=True)
class LossBytes:
    """Bytes by moment of the loss."""

    saved: int
    """Log-softmax, kept for backward."""
    transient: int
    """On top of it at the loss's peak."""
    head_backward: int
    """Gradients of logits and hidden states while the head's own gradient is computed."""
    early_gradient: int
    """The head's whole gradient where it exists before backward begins."""
    shared: int
    """Rotary tables and token ids: alive until the last block's backward."""


def loss_bytes(shape: ModelShape, setup: TrainingSetup) -> LossBytes:
    """Bytes of the loss: 12 per vocabulary entry and token for one sequence, 14 for several, with bf16 logits."""
    size, tokens = element_bytes(setup), setup.tokens
    shared = 2 * size * shape.head_dim * tokens + 16 * tokens
    if setup.loss != "plain":
        return _chunked(shape, setup, shared)
    shifted, whole = shape.vocab * (tokens - setup.micro_batch), shape.vocab * tokens
    saved = 4 * shifted
    # Forward: logits, in fp32 too unless they are, and shifted if that copies. Backward: two gradients.
    forward = 4 * whole + (size * whole if size == 2 else 0) + (4 * shifted if setup.micro_batch > 1 else 0)
    head_backward = size * whole + size * shape.hidden * tokens
    return LossBytes(saved, max(8 * shifted, forward), head_backward, 0, shared)


def _chunked(shape: ModelShape, setup: TrainingSetup, shared: int) -> LossBytes:
    size = element_bytes(setup)
    chunk = min(CHUNK_TOKENS, setup.tokens - setup.micro_batch)
    # Two fp32 tensors per chunk; from the second chunk on beside one and its bf16 gradient of the chunk before.
    per_entry = 8 if setup.tokens <= CHUNK_TOKENS else 12 + size
    hidden = size * shape.hidden * setup.tokens * (2 if setup.micro_batch > 1 else 1)
    gradient = size * shape.vocab * shape.hidden
    return LossBytes(0, per_entry * shape.vocab * chunk + hidden, hidden, gradient, shared)
