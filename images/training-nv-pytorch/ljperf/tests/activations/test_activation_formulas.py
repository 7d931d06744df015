"""Formulas against what autograd really saves, to the byte."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from ljperf.memory.activations import activations_of
from ljperf.memory.activations.counting import CountError, counted, counted_model, counted_with_input
from ljperf.memory.activations.formulas import (
    FAMILIES,
    NoFormulaError,
    checkpoint_bytes,
    head_bytes,
    input_bytes,
    is_measured,
    saved_bytes,
)
from ljperf.memory.activations.habits import REFERENCE, habits_of
from ljperf.models.building import build_block
from ljperf.models.catalog import model_named
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

# (hidden, head width, heads, kv heads, MLP): grouped, one for each, one for all; heads as wide as the model and not.
SIZES = ((64, 16, 4, 2, 176), (96, 32, 4, 4, 200), (128, 16, 4, 1, 512))
SEQUENCES = (32, 64, 96)


def shape_of(family: str, size: tuple[int, int, int, int, int]) -> ModelShape:
    hidden, width, heads, kv_heads, ffn = size
    width = hidden // heads if family == "phi3" else width  # Phi-3 has no heads of another width
    return ModelShape("x", family, hidden, 2, heads, kv_heads, width, ffn, 512, 512)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_block_saves_what_the_formula_says(family: str, attention: str) -> None:
    for size, sequence in itertools.product(SIZES, SEQUENCES):
        shape, setup = shape_of(family, size), TrainingSetup(sequence=sequence, attention=attention)
        assert counted(shape, setup) == saved_bytes(shape, setup), (size, sequence)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_it_does_so_in_fp32_and_for_several_sequences(family: str, attention: str) -> None:
    for size in SIZES:
        shape, setup = shape_of(family, size), TrainingSetup(sequence=32, attention=attention, micro_batch=2)
        assert counted(shape, setup) == saved_bytes(shape, setup), size
        whole = replace(setup, precision="fp32", micro_batch=1)
        assert counted(shape, whole) == saved_bytes(shape, whole), size


def test_real_tensors_are_as_large_as_fake_ones() -> None:
    shape, setup = shape_of("llama", SIZES[0]), TrainingSetup(sequence=64)
    assert counted(shape, setup, fake=False) == counted(shape, setup) == saved_bytes(shape, setup)


def test_a_recomputed_block_keeps_its_input() -> None:
    shape, setup = shape_of("llama", SIZES[0]), TrainingSetup(sequence=64, precision="fp32")
    saved, own_input = counted_with_input(shape, setup)
    assert own_input == checkpoint_bytes(shape, setup) == 64 * 64 * 4
    assert saved == saved_bytes(shape, setup)


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_what_recomputing_makes_anew_lacks_an_input_that_was_kept(precision: str) -> None:
    shape, setup = shape_of("llama", SIZES[0]), TrainingSetup(sequence=64, precision=precision)
    saved, own_input = counted_with_input(shape, setup)
    assert activations_of(shape, setup).recompute_working_set == saved - own_input
    assert own_input == input_bytes(shape, setup)


# Counted once in Transformers 5.25.0 with PyTorch 2.13.0, real tensors: family, kv heads, precision, bytes of a block
# with hidden 64, 4 heads of 32, MLP 176, for 96 tokens.
COUNTED_IN_5_25 = (
    ("llama", 2, "bf16", 309_504),
    ("llama", 4, "bf16", 334_080),
    ("llama", 2, "fp32", 567_552),
    ("gemma", 2, "bf16", 334_592),
    ("gemma", 1, "fp32", 543_488),
    ("phi3", 2, "bf16", 370_944),
)


@pytest.mark.parametrize(("family", "kv_heads", "precision", "expected"), COUNTED_IN_5_25)
def test_a_later_release_saves_keys_and_values_of_fewer_heads(
    family: str, kv_heads: int, precision: str, expected: int
) -> None:
    shape = shape_of(family, (64, 32, 4, kv_heads, 176))
    shape = replace(shape, head_dim=32)
    setup = TrainingSetup(sequence=96, precision=precision)
    assert saved_bytes(shape, setup, habits_of("5.25.0")) == expected


def test_a_later_loss_keeps_the_last_positions_logits_too() -> None:
    shape, setup = model_named("llama3-8b"), TrainingSetup(sequence=4096, micro_batch=2)
    earlier, later = (head_bytes(shape, setup, habits_of(release)) for release in ("4.48.3", "4.49.0"))
    assert later - earlier == (4 * 128256 + 8) * 2


def test_releases_change_habits_where_their_sources_do() -> None:
    found = {release: habits_of(release) for release in ("4.48.3", "4.49.0", "4.53.3", "4.54.1", "4.55.4", "4.56.0")}
    assert [(h.repeats_heads, h.copies_heads, h.shifts_logits) for h in found.values()] == [
        (True, True, True), (True, True, False), (True, True, False),
        (False, True, False), (False, True, False), (False, False, False),
    ]  # fmt: skip
    assert habits_of("main") == habits_of(REFERENCE)


@pytest.mark.parametrize(
    ("attention", "sequence", "expected"),
    [("sdpa", 4096, 906_526_720), ("eager", 4096, 4_093_673_472)],
)
def test_a_block_of_an_8b_model_has_the_published_count(attention: str, sequence: int, expected: int) -> None:
    setup = TrainingSetup(sequence=sequence, attention=attention)
    assert saved_bytes(model_named("llama3-8b"), setup, habits_of("4.48.3")) == expected


def test_a_compiled_block_of_an_8b_model_saves_a_quarter_less() -> None:
    setup = TrainingSetup(sequence=4096, compiled=True)
    assert saved_bytes(model_named("llama3-8b"), setup, habits_of("4.48.3")) == 159_880 * 4096


@pytest.mark.slow
@pytest.mark.parametrize(("family", "attention"), [("llama", "sdpa"), ("gemma", "eager"), ("phi3", "sdpa")])
def test_a_compiled_block_saves_what_the_formula_says_and_its_input(family: str, attention: str) -> None:
    import torch

    shape, setup = shape_of(family, SIZES[0]), TrainingSetup(sequence=64, attention=attention, compiled=True)
    model = build_block(shape, dtype=torch.bfloat16, attention=attention).train()
    block = model.get_submodule("model.layers.0")
    block.forward = torch.compile(block.forward, backend="aot_eager")
    assert counted_with_input(model, setup, fake=False) == (saved_bytes(shape, setup), input_bytes(shape, setup))


def test_outside_the_blocks_an_8b_model_saves_what_was_counted() -> None:
    assert head_bytes(model_named("llama3-8b"), TrainingSetup(sequence=4096), habits_of("4.48.3")) == 2_237_230_084


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("micro_batch", [1, 2])
def test_blocks_and_head_make_the_whole_model(micro_batch: int, precision: str) -> None:
    shape, setup = model_named("tiny"), TrainingSetup(sequence=64, micro_batch=micro_batch, precision=precision)
    said = shape.layers * saved_bytes(shape, setup) + head_bytes(shape, setup)
    assert counted_model(shape, setup, fake=False) == said


def test_without_plain_logits_the_head_lacks_them() -> None:
    shape, setup = model_named("llama3-8b"), TrainingSetup(sequence=4096)
    chunked = replace(setup, loss="chunked")
    kept = head_bytes(shape, setup, habits_of("4.48.3")) - head_bytes(shape, chunked, habits_of("4.48.3"))
    assert kept == 4 * 128256 * 4095


def test_an_unknown_family_is_counted() -> None:
    shape, setup = shape_of("olmo", SIZES[0]), TrainingSetup(sequence=32, attention="eager")
    with pytest.raises(NoFormulaError, match="olmo"):
        saved_bytes(shape, setup)
    found = activations_of(shape, setup)
    assert (found.how, found.exact) == ("counted", True)
    assert found.per_layer == counted(shape, setup)


def test_experts_are_counted_at_a_small_size_and_said_to_be_inexact() -> None:
    shape = replace(model_named("mixtral-8x7b"), hidden=256, ffn=448, heads=8, kv_heads=2, head_dim=32)
    setup = TrainingSetup(sequence=256)
    found = activations_of(shape, setup)
    assert (found.how, found.exact) == ("counted", False)
    assert found.per_layer == pytest.approx(counted(shape, setup, fake=False), rel=0.05)
    with pytest.raises(CountError):  # which expert gets a token is decided by values
        counted(shape, setup)


def test_what_was_never_measured_is_not_called_exact() -> None:
    shape = model_named("llama3-8b")
    assert is_measured(shape, TrainingSetup())
    assert not activations_of(shape, TrainingSetup(attention="flash_attention_2")).exact
    assert not activations_of(shape, TrainingSetup(compiled=True)).exact
