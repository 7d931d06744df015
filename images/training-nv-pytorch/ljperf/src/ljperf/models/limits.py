"""What a model cannot do, found before anything is built."""

from __future__ import annotations

from ljperf.errors import UsageError
from ljperf.models.shape import ModelShape


class SequenceTooLongError(UsageError):
    """The sequence has more tokens than the model has positions."""


class ImpossibleShapeError(UsageError):
    """No such model can be built."""


def check_sequence(shape: ModelShape, sequence: int) -> None:
    """Refuse a sequence that the model's positions do not cover.

    Raises SequenceTooLongError with both numbers, UsageError for a sequence without a token to predict.
    """
    if sequence < 2:
        raise UsageError(f"a sequence of {sequence} has no token to predict", hint="--sequence 2 or more")
    if sequence > shape.max_positions:
        raise SequenceTooLongError(
            f"{shape.name} has {shape.max_positions} positions, and a sequence of {sequence} needs more",
            hint=f"--sequence {shape.max_positions} at most, or a model with more positions",
        )


def check_shape(shape: ModelShape) -> None:
    """Refuse a shape whose numbers contradict each other.

    Raises ImpossibleShapeError naming the first that does.
    """
    for fault, found in _faults(shape).items():
        if found:
            raise ImpossibleShapeError(f"{shape.name}: {fault}", hint="compare it with the model's config.json")


def _faults(shape: ModelShape) -> dict[str, bool]:
    sizes = (shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn, shape.vocab)
    return {
        "every size must be 1 or more": min(*sizes, shape.max_positions) < 1,
        f"{shape.heads} query heads cannot share {shape.kv_heads} key heads evenly": bool(
            shape.kv_heads > 0 and shape.heads % shape.kv_heads
        ),
        f"a token cannot go to {shape.experts_per_token} of {shape.experts} experts": (
            shape.experts_per_token > shape.experts or (shape.experts > 0) != (shape.experts_per_token > 0)
        ),
    }
