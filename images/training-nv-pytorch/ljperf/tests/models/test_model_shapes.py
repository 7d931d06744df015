"""Shapes by name, their parameters and their arithmetic."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from ljperf.errors import UnknownModelError, UsageError
from ljperf.models.building import MissingFrameworkError, counted_parameters, transformers_config
from ljperf.models.catalog import model_named, model_names
from ljperf.models.flops import flops_per_token, hardware_flops_per_token
from ljperf.models.from_config import UnknownConfigError, shape_of
from ljperf.models.limits import ImpossibleShapeError, SequenceTooLongError, check_sequence
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


def test_a_block_of_experts_counts_all_of_them_and_computes_with_those_a_token_is_sent_to() -> None:
    shape = model_named("mixtral-8x7b")
    assert parameters_of(shape).total == 46_702_792_704  # published as 46.7 billion, of which 12.9 active
    # Without attention's own products: six operations for each of the 12.9 billion active parameters but the embedding.
    products = 12 * shape.layers * shape.query_width * 4096
    assert flops_per_token(shape, 4096) - products == 6 * (12_879_925_248 - 32000 * 4096)


def test_an_unlisted_family_is_built_without_memory_and_counted() -> None:
    shape = replace(model_named("tiny"), family="olmo")
    found = parameters_of(shape)  # OLMo's norms have no parameters
    assert (found.layer, found.final_norm) == (36_864, 0)
    assert found.total == 4 * 36_864 + 2 * 512 * 64


def test_a_family_that_transformers_lacks_is_told() -> None:
    with pytest.raises(UnknownModelError, match="no family 'nobody'"):
        transformers_config(replace(model_named("tiny"), family="nobody"))


def test_a_family_whose_blocks_are_elsewhere_is_told() -> None:
    with pytest.raises(UnknownModelError, match=r"model\.layers"):
        counted_parameters(replace(model_named("tiny"), family="gpt_neox"))


def test_without_transformers_it_is_told_what_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingFrameworkError, match="transformers"):
        transformers_config(model_named("tiny"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_heads": 3}, "4 query heads cannot share 3 key heads"),
        ({"layers": 0}, "every size must be 1 or more"),
        ({"experts": 4, "experts_per_token": 5}, "5 of 4 experts"),
        ({"experts": 4}, "0 of 4 experts"),
    ],
)
def test_a_shape_that_contradicts_itself_is_told_before_it_is_built(change: dict[str, int], said: str) -> None:
    with pytest.raises(ImpossibleShapeError, match=said):
        transformers_config(replace(model_named("tiny"), **change))


def test_a_sequence_without_a_token_to_predict_is_told() -> None:
    with pytest.raises(UsageError, match="sequence of 1"):
        check_sequence(model_named("tiny"), 1)


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
