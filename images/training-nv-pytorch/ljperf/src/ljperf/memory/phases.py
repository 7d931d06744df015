"""Peak memory of a training step: the largest of its phases, each the sum of its parts; never one closed form.

A step is walked as PyTorch runs it: the loss over all logits, the head's backward, each block's backward from the last
to the first (recomputed first where it kept only its input), the embedding's gradient, the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ljperf.errors import UsageError
from ljperf.memory.activations import Activations, activations_of
from ljperf.memory.block import Moment, moments_of, norm_backward
from ljperf.memory.gathers import Gathers, gathers_of, reused
from ljperf.memory.losses import LossBytes, loss_bytes, shared_bytes
from ljperf.memory.states import States, autocasts, sharding_of, states_of, stream_bytes
from ljperf.models.limits import check_sequence
from ljperf.models.parameters import Parameters, parameters_of
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

Parts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """A moment of the step: what takes how many bytes."""

    name: str
    parts: Parts

    @property
    def bytes(self) -> int:
        """All parts together."""
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest moment of each kind of phase, in the order of the step. Bytes that tensors take, as allocated."""

    phases: tuple[Phase, ...]
    exact: bool = True
    """Are the activations exact?"""
    how: str = "formula"

    @property
    def highest(self) -> Phase:
        """The phase that decides."""
        return max(self.phases, key=lambda phase: phase.bytes)

    @property
    def bytes(self) -> int:
        """What has to fit."""
        return self.highest.bytes


@dataclass(frozen=True, slots=True)
class Step:
    """All that is known of a step before the number of recomputed layers: simulations for each share it."""

    shape: ModelShape
    setup: TrainingSetup
    parameters: Parameters
    states: States
    gathers: Gathers
    activations: Activations
    loss: LossBytes
    moments: tuple[Moment, ...]
    norm: int
    """Bytes that the final norm saves, and the few beside it."""
    reused: int
    """Bytes of the last blocks' weights that stay gathered from forward to backward."""


def step_of(shape: ModelShape, setup: TrainingSetup) -> Step:
    """Count what does not depend on the number of recomputed layers.

    Raises UsageError for a sequence longer than the model's positions, or an impossible setup.
    """
    check_sequence(shape, setup.sequence)
    if setup.micro_batch < 1:
        raise UsageError(f"a batch of {setup.micro_batch} sequences cannot train", hint="--micro-batch 1 or more")
    kept = reused(shape, setup) if sharding_of(setup) == "zero3" else 0
    loss, plain = loss_bytes(shape, setup), replace(setup, loss="plain")
    activations = activations_of(shape, plain)
    norm = activations.head - loss_bytes(shape, plain).saved - shared_bytes(shape, setup, setup.element_bytes)
    if autocasts(setup):
        activations, norm = _under_autocast(shape, setup, activations), norm + 2 * shape.hidden * setup.tokens
    return Step(
        shape=shape, setup=setup, parameters=parameters_of(shape), states=states_of(shape, setup),
        gathers=gathers_of(shape, setup), activations=activations, loss=loss,
        moments=moments_of(shape, setup, activations.per_layer),
       
        norm=max(norm, 0), reused=kept * setup.element_bytes,
    )  # fmt: skip


def _under_autocast(shape: ModelShape, setup: TrainingSetup, activations: Activations) -> Activations:
    """Counted: norms keep fp32 results, and each of five products its own cast of its input; a kept input is fp32."""
    more = shape.hidden * setup.tokens
    return replace(
        activations,
        per_layer=activations.per_layer + 10 * more,
        per_recomputed_layer=activations.per_recomputed_layer + 2 * more,
        recompute_working_set=activations.recompute_working_set + 10 * more,
    )


def peak_of(shape: ModelShape, setup: TrainingSetup) -> Peak:
    """Peak of one device's step, with `setup.recompute_layers` of the first layers recomputed."""
    return simulate(step_of(shape, setup), setup.recompute_layers)


def simulate(step: Step, recomputed: int) -> Peak:
    """Walk the step with the first `recomputed` layers recomputed.

    Raises UsageError if the model has fewer layers.
    """
    if not 0 <= recomputed <= step.shape.layers:
        raise UsageError(
            f"{step.shape.name} has {step.shape.layers} layers, so {recomputed} cannot recompute",
            hint=f"from 0 to {step.shape.layers}",
        )
    phases = (
        Phase("initialisation", {"parameters": step.states.initial}),
        _loss(step, recomputed),
        _head(step, recomputed),
        _final_norm(step, recomputed),
        *_blocks(step, recomputed),
        _embedding(step),
        _optimizer(step),
    )
    return Peak(phases, step.activations.exact, step.activations.how)


def saved_before(step: Step, recomputed: int, layer: int) -> int:
    """Bytes saved by the layers before `layer`: `layer = n` is all of them."""
    inputs, kept = min(layer, recomputed), max(layer - recomputed, 0)
    # Checkpoints hold the causal mask that eager attention is given.
    mask = stream_bytes(step.setup) * step.setup.sequence**2 if recomputed and step.setup.attention == "eager" else 0
    return mask + inputs * step.activations.per_recomputed_layer + kept * step.activations.per_layer


def _resident(step: Step, produced: int, *, backward: bool) -> dict[str, int]:
    """States, with the gradients of `produced` elements so far (all of them if they accumulate over forwards)."""
    elements = step.parameters.total if step.setup.accumulation > 1 else produced
    return {
        "parameters": step.states.parameters,
        "optimizer": step.states.optimizer,
        "gradients": step.states.gradients + round(step.states.per_gradient * elements),
        "buckets": step.states.buckets if backward or sharding_of(step.setup) in ("none", "zero3") else 0,
    }


def _pinned(step: Step, recomputed: int, layer: int) -> int:
    return step.gathers.pinned_per_kept_layer * max(layer - recomputed, 0)


def _ends(step: Step, recomputed: int, produced: int) -> dict[str, int]:
    """What is alive between forward and backward, whatever the loss does."""
    layers = step.shape.layers
    parts = _resident(step, produced, backward=True)
    pinned = _pinned(step, recomputed, layers)
    parts["weights in use"] = step.gathers.ends + step.gathers.held + max(step.reused, pinned)
    parts["activations"] = saved_before(step, recomputed, layers) + step.norm + step.loss.shared
    return parts


def _loss(step: Step, recomputed: int) -> Phase:
    parts = _ends(step, recomputed, 0)
    parts["gradients"] += step.loss.early_gradient
    # Autocast's cache also holds the recomputed layers' casts, until the forward ends.
    cached = step.gathers.block * recomputed if autocasts(step.setup) else 0
    ends_higher = step.loss.forward + cached > step.loss.backward
    parts["weights in use"] += cached if ends_higher else 0
    parts["logits"] = step.loss.saved + (step.loss.forward if ends_higher else step.loss.backward)
    return Phase("loss", parts)


def _head(step: Step, recomputed: int) -> Phase:
    parts = _ends(step, recomputed, step.shape.vocab * step.shape.hidden)
    parts["gradients"] += step.gathers.head_gradient
    parts["logits"] = step.loss.head_backward
    return Phase("backward of the head", parts)


def _final_norm(step: Step, recomputed: int) -> Phase:
    tokens, hidden = step.setup.tokens, step.shape.hidden
    parts = _ends(step, recomputed, step.shape.vocab * hidden)
    parts["weights in use"] -= step.gathers.ends
    output = step.setup.element_bytes * hidden * tokens
    parts["activations"] += norm_backward(step.shape, step.setup) - output
    return Phase("backward of the final norm", parts)


def _blocks(step: Step, recomputed: int) -> Iterator[Phase]:
    """The highest moment of a kept layer's backward, and of a recomputed one's; absent where there is no such layer."""
    layers = step.shape.layers
    kept = [_moment(step, recomputed, layer, moment) for layer in range(recomputed, layers) for moment in step.moments]
    again = [_moment(step, recomputed, layer, moment) for layer in range(recomputed) for moment in step.moments]
    for phases in (kept, again):
        if phases:
            yield max(phases, key=lambda phase: phase.bytes)


def _moment(step: Step, recomputed: int, layer: int, moment: Moment) -> Phase:
    after = step.shape.layers - 1 - layer
    produced = step.shape.vocab * step.shape.hidden + step.shape.hidden + after * step.parameters.layer
    parts = _resident(step, produced + moment.gradients, backward=True)
    parts["gradients"] += 0 if step.states.per_gradient else step.setup.element_bytes * moment.module
    full = step.gathers.reducing and produced >= step.setup.reduce_bucket
    parts["weights in use"] = step.gathers.block + step.gathers.held + max(
        step.reused if after == 0 else 0, _pinned(step, recomputed, layer + 1)
    )  # fmt: skip
    parts["reduction"] = step.gathers.reducing if full else 0
    again = layer < recomputed
    # An fp32 input is saved by the block's first norm as it is: recomputing adds nothing to the one that was kept.
    own = step.activations.per_recomputed_layer if again and stream_bytes(step.setup) == 2 else 0
    parts["activations"] = saved_before(step, recomputed, layer) + own + moment.alive + step.loss.shared
    return Phase(f"{'recompute' if again else 'backward'} of layer {layer}", parts)


def _embedding(step: Step) -> Phase:
    """The embedding's gradient is dense; tied to the head, it is added to the head's."""
    embedding = step.shape.vocab * step.shape.hidden
    parts = _resident(step, step.parameters.total, backward=True)
    size = step.setup.element_bytes
    transient = size * embedding if step.shape.tied or not step.states.per_gradient else 0
    parts["gradients"] += transient
    parts["weights in use"] = step.gathers.ends + step.gathers.held
    parts["reduction"] = step.gathers.reducing
    parts["activations"] = step.loss.shared + size * step.shape.hidden * step.setup.tokens
    return Phase("backward of the embedding", parts)


def _optimizer(step: Step) -> Phase:
    parts = _resident(step, step.parameters.total, backward=False)
    parts["step"] = step.states.step
    return Phase("optimizer step", parts)
