"""The phase model against PyTorch's MemTracker, and against peaks that were measured with it before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ljperf.memory.phases import peak_of, simulate, step_of
from ljperf.memory.tracking import predicted_peak, tracked_peak
from ljperf.models.catalog import model_named
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

SMALL = ModelShape("small", "llama", 64, 3, 4, 2, 16, 176, 512, 2048)
LARGE_VOCABULARY = replace(SMALL, vocab=8192)
# No dimension equals another, and the MLP is no wider than the model: norms and attention set the peak.
WIDE_ATTENTION = ModelShape("wide", "llama", 256, 3, 8, 8, 64, 256, 64, 2048)


@pytest.mark.parametrize(
    ("shape", "setup", "layers"),
    [
        (SMALL, TrainingSetup(sequence=128), (0, 1, 3)),
        (SMALL, TrainingSetup(sequence=96, micro_batch=3, precision="fp32"), (3,)),
        (SMALL, TrainingSetup(sequence=256, micro_batch=2, attention="eager"), (0, 2)),
        (LARGE_VOCABULARY, TrainingSetup(sequence=96, micro_batch=3), (2,)),
        (LARGE_VOCABULARY, TrainingSetup(sequence=256, precision="fp32"), (1,)),
        (LARGE_VOCABULARY, TrainingSetup(sequence=1500, loss="chunked"), (1,)),
        (WIDE_ATTENTION, TrainingSetup(sequence=512), (0, 3)),
        (WIDE_ATTENTION, TrainingSetup(sequence=64), (3,)),  # gradients, not activations
        (SMALL, TrainingSetup(framework="ddp", sequence=256), (3,)),  # autocast
        (SMALL, TrainingSetup(framework="ddp", sequence=128, micro_batch=2), (2,)),
    ],
)
def test_the_predicted_peak_is_within_one_percent_of_the_counted_one(
    shape: ModelShape, setup: TrainingSetup, layers: tuple[int, ...]
) -> None:
    for count in layers:
        asked = setup.recomputing(count)
        assert predicted_peak(shape, asked).bytes == pytest.approx(tracked_peak(shape, asked), rel=0.01), count


@pytest.mark.parametrize(
    ("recomputed", "counted"), [(0, 13_911_221_512), (1, 13_038_281_992), (2, 12_165_309_704)]
)  # MemTracker, torch 2.13, transformers 4.48.3
def test_four_layers_of_llama3_8b_peak_where_they_were_counted(recomputed: int, counted: int) -> None:
    shape = replace(model_named("llama3-8b"), layers=4)
    peak = predicted_peak(shape, TrainingSetup(sequence=4096, recompute_layers=recomputed))
    assert peak.bytes == pytest.approx(counted, rel=1e-5)
    assert peak.highest.name == "loss"


def test_the_last_layer_gains_nothing_where_recomputing_one_sets_the_peak() -> None:
    shape = ModelShape("small-vocabulary", "llama", 256, 4, 8, 8, 32, 1024, 256, 4096)
    setup = TrainingSetup(sequence=512)
    predicted = [predicted_peak(shape, setup.recomputing(k)).bytes for k in range(5)]
    assert predicted[0] > predicted[1] > predicted[2] > predicted[3] == predicted[4]
    assert predicted[3] == pytest.approx(tracked_peak(shape, setup.recomputing(3)), rel=0.01)
    assert predicted[4] == pytest.approx(tracked_peak(shape, setup.recomputing(4)), rel=0.01)


def test_logits_cost_12_bytes_per_entry_with_one_sequence_and_14_with_several() -> None:
    shape = model_named("llama3-8b")
    entries = shape.vocab * 4096
    per_entry = []
    for batch in (1, 2):
        loss = next(
            phase
            for phase in peak_of(shape, TrainingSetup(micro_batch=batch, sequence=4096 // batch)).phases
            if phase.name == "loss"
        )
        per_entry.append(loss.parts["logits"] / entries)
    assert per_entry == pytest.approx([12, 14], rel=1e-3)


def test_accumulated_gradients_are_alive_in_the_loss_already() -> None:
    shape = model_named("llama3.2-1b")
    once = TrainingSetup(framework="hf", zero_stage=0, precision="fp32", sequence=256)
    gradients = [
        next(phase.parts["gradients"] for phase in peak_of(shape, setup).phases if phase.name == "loss")
        for setup in (once, replace(once, accumulation=2))
    ]
    assert gradients == [0, 4 * 1_235_814_400]  # Llama-3.2-1B's parameters as published, in fp32


def test_without_zero_init_eager_zero3_keeps_14_gb_of_gathered_weights_on_8b() -> None:
    shape = model_named("llama3-8b")
    setup = TrainingSetup(world_size=8, sequence=1024)
    pinned = simulate(step_of(shape, replace(setup, zero_init=False)), 0).bytes - peak_of(shape, setup).bytes
    assert pinned == pytest.approx(14e9, rel=0.01)
    compiled = replace(setup, compiled=True)
    assert peak_of(shape, replace(compiled, zero_init=False)).bytes == peak_of(shape, compiled).bytes


def test_recomputed_layers_pin_no_gathered_weight() -> None:
    shape = model_named("llama3-8b")
    with_init = TrainingSetup(world_size=8, sequence=4096, recompute_layers=32)
    without = replace(with_init, zero_init=False)
    losses = [phase.bytes for setup in (with_init, without) for phase in peak_of(shape, setup).phases[1:2]]
    assert losses[0] == losses[1]
