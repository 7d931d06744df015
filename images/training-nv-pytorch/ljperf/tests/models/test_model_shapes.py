"""Shapes by name, their parameters and their arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ljperf.errors import UnknownModelError
from ljperf.models.building import counted_parameters, transformers_config
from ljperf.models.catalog import model_named, model_names
from ljperf.models.flops import flops_per_token, hardware_flops_per_token
from ljperf.models.from_config import UnknownConfigError, shape_of
from ljperf.models.limits import SequenceTooLongError, check_sequence
from ljperf.models.parameters import parameters_of


@pytest.mark.parametrize(
    ("name", "total", "layer", "embedding"),
    [
        ("llama3-8b", 8_030_261_248, 218_112_000, 525_336_576),
        ("llama3-70b", 70_553_706_496, 855_654_400, 1_050_673_152),
    ],
)
def test_a_published_model_has_its_number_of_parameters(name: str, total: int, layer: int, embedding: int) -> None:
    found = parameters_of(model_named(name))
    assert (found.total, found.layer, found.embedding) == (total, layer, embedding)


@pytest.mark.parametrize("name", ["llama3.2-1b", "qwen2.5-7b", "mixtral-8x7b", "tiny"])
def test_the_count_is_that_of_the_built_model(name: str) -> None:
    shape = model_named(name)
    assert parameters_of(shape) == counted_parameters(shape)


def test_a_tied_head_counts_once() -> None:
    found = parameters_of(model_named("llama3.2-1b"))
    assert found.head == 0
    assert found.total == 1_235_814_400


def test_operations_per_token_follow_the_convention_that_is_named() -> None:
    shape = model_named("llama3-8b")
    assert flops_per_token(shape, 8192) == pytest.approx(57.9e9, rel=0.002)
    assert flops_per_token(shape, 4096) == pytest.approx(51.5e9, rel=0.002)
    assert flops_per_token(shape, 4096, "causal") == pytest.approx(48.3e9, rel=0.002)


def test_recomputing_all_layers_adds_a_third_of_their_operations() -> None:
    shape = model_named("llama3-8b")
    none, full = (hardware_flops_per_token(shape, 8192, layers) for layers in (0, shape.layers))
    assert none == flops_per_token(shape, 8192)
    assert 1.28 < full / none < 1.34


def test_an_unknown_model_is_told_with_the_closest_names() -> None:
    with pytest.raises(UnknownModelError) as caught:
        model_named("llama3-8")
    assert "llama3-8b" in f"{caught.value.message} {caught.value.hint}"
    assert {"llama3-8b", "llama3-70b", "llama3.2-1b", "qwen2.5-7b", "mixtral-8x7b", "tiny"} <= set(model_names())


def test_a_sequence_over_the_models_positions_is_told_with_both_numbers() -> None:
    with pytest.raises(SequenceTooLongError, match=r"512 positions.*513"):
        check_sequence(model_named("tiny"), 513)


@pytest.mark.parametrize("name", ["llama3-8b", "llama3.2-1b", "qwen2.5-7b", "mixtral-8x7b", "tiny"])
def test_a_config_tells_the_shape_that_it_was_made_from(name: str) -> None:
    shape = model_named(name)
    assert replace(shape_of(transformers_config(shape)), name=name) == shape


def test_a_config_that_is_no_decoders_is_told_by_what_it_lacks() -> None:
    with pytest.raises(UnknownConfigError, match="num_attention_heads"):
        shape_of(object())
