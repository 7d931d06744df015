"""What `ljperf check` says: the public reports' cases, and all that DeepSpeed passes over in silence."""

from __future__ import annotations

from typing import Any

import pytest
from ljperf.dsconfig.check import findings, has_auto
from ljperf.dsconfig.derived import derived, effective
from ljperf.dsconfig.finding import Finding, pointer_of

MICRO = {"train_micro_batch_size_per_gpu": 1}
PREFETCH = "/zero_optimization/stage3_prefetch_bucket_size"


def zero(stage: int = 3, **keys: Any) -> dict[str, Any]:
    return {**MICRO, "zero_optimization": {"stage": stage, **keys}}


def found(config: dict[str, Any], *, transformers: bool = False, **more: Any) -> tuple[Finding, ...]:
    return findings(config, transformers=transformers, **({"deepspeed_version": "0.16.4"} | more))


def one(config: dict[str, Any], pointer: str, **more: Any) -> Finding:
    matching = [finding for finding in found(config, **more) if finding.pointer == pointer]
    assert len(matching) == 1, found(config, **more)
    return matching[0]


def test_a_config_in_order_has_no_finding() -> None:
    config = {**MICRO, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "overlap_comm": True}}
    assert found(config) == ()


# 0.9 x hidden size squared, as code once wrote it: the widths are those of the public reports.
@pytest.mark.parametrize(
    ("hidden", "size"), [(4096, 15099494.4), (2048, 3774873.6), (3584, 11560550.4), (3072, 8493465.6)]
)
def test_a_fraction_as_prefetch_bucket_is_an_error_that_names_the_integer(hidden: int, size: float) -> None:
    finding = one(zero(stage3_prefetch_bucket_size=size), PREFETCH, hidden=hidden)
    assert finding.severity == "error"
    assert str(int(size)) in (finding.hint or "")
    assert derived("stage3_prefetch_bucket_size", hidden) == int(size)


@pytest.mark.parametrize("size", [50_000_000, 5e7, "50000000"])
def test_a_number_as_prefetch_bucket_is_a_warning_with_the_models_own_size(size: Any) -> None:
    finding = one(zero(stage3_prefetch_bucket_size=size), PREFETCH, hidden=4096)
    assert finding.severity == "warning"
    assert "50,000,000" in finding.message
    assert "15,099,494" in finding.message


def test_a_text_with_an_exponent_is_an_error_that_names_the_number() -> None:
    finding = one(zero(stage3_prefetch_bucket_size="5e7"), PREFETCH)
    assert (finding.severity, "50000000" in (finding.hint or "")) == ("error", True)


def test_a_prefetch_bucket_of_zero_is_off() -> None:
    assert "off" in one(zero(stage3_prefetch_bucket_size=0), PREFETCH).message


@pytest.mark.parametrize("written", [{}, {"stage3_prefetch_bucket_size": "auto"}])
def test_blank_or_auto_as_prefetch_bucket_is_the_images_rule(written: dict[str, Any]) -> None:
    config = zero(reduce_bucket_size="auto", **written)
    assert [finding for finding in found(config, transformers=True) if "prefetch" in finding.pointer] == []


def test_the_number_that_auto_gives_is_no_finding() -> None:
    assert found(zero(stage3_prefetch_bucket_size=15_099_494), hidden=4096) == ()


def test_auto_alone_is_deepspeeds_default_and_says_both_sizes() -> None:
    config = zero(stage3_prefetch_bucket_size="auto", reduce_bucket_size="auto")
    assert "50,000,000 elements, not 15,099,494" in one(config, PREFETCH, hidden=4096).message
    reduce = one(config, "/zero_optimization/reduce_bucket_size")
    assert (reduce.severity, "1 GB" in reduce.message) == ("warning", True)


def test_a_missing_reduce_bucket_under_transformers_is_deepspeeds_gigabyte() -> None:
    assert "500,000,000" in one(zero(), "/zero_optimization", transformers=True).message


def test_sizes_in_effect_are_shown_for_both_readers() -> None:
    config = zero(stage3_prefetch_bucket_size="auto", reduce_bucket_size=1.5)
    shown = {size.name: (size.plain, size.transformers) for size in effective(config, 4096)}
    assert shown == {
        "reduce_bucket_size": (None, None),
        "stage3_prefetch_bucket_size": (50_000_000, 15_099_494),
        "stage3_param_persistence_threshold": (100_000, 100_000),
    }
    assert [size.name for size in effective(zero(2), None)] == ["reduce_bucket_size"]
    assert effective(MICRO, None) == ()


@pytest.mark.parametrize(
    ("sizes", "ranks", "words"),
    [
        ((32, 3, None), 4, "32 is not 3 x 2 x 4 = 24"),
        ((32, 2, 2), 4, "32 is not 2 x 2 x 4 = 16"),
        ((7, None, None), 2, "7 is not 3 x 1 x 2 = 6"),
        ((7, 2, None), None, "no number of ranks fits"),
        ((0, None, None), 1, "must be 1 or more"),
        ((8.0, None, None), 1, "must be a whole number"),
        ((True, None, None), 1, "must be a whole number"),
    ],
)
def test_batch_sizes_that_do_not_multiply_are_an_error(sizes: tuple[Any, ...], ranks: int | None, words: str) -> None:
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    config = {name: size for name, size in zip(names, sizes, strict=True) if size is not None}
    finding = one(config, "/train_batch_size", world_size=ranks)
    assert (finding.severity, words in finding.message) == ("error", True), finding


def test_three_batch_sizes_fit_one_number_of_ranks() -> None:
    config = {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
    assert "8 data-parallel ranks" in one(config, "/train_batch_size").message
    assert found(config, world_size=8) == ()
    assert found({**config, "sequence_parallel_size": 2}, world_size=16) == ()
    assert "do not divide" in one({**config, "sequence_parallel_size": 3}, "", world_size=16).message


def test_no_batch_size_at_all_is_an_error() -> None:
    assert one({"gradient_accumulation_steps": 2}, "").severity == "error"


def test_keys_of_stage_3_with_stage_2_are_not_read() -> None:
    config = zero(2, stage3_max_live_parameters=1, stage3_prefetch_bucket_size=5)
    assert {finding.pointer.rpartition("/")[2] for finding in found(config)} == {
        "stage3_max_live_parameters",
        "stage3_prefetch_bucket_size",
    }
    assert {finding.severity for finding in found(config)} == {"warning"}


def test_offloaded_parameters_need_stage_3() -> None:
    assert "needs stage 3" in one(zero(2, offload_param={"device": "cpu"}), "/zero_optimization/offload_param").message
    assert found(zero(3, offload_param={"device": "cpu"})) == ()
    assert found(zero(2, offload_param={"device": "none"})) == ()


def test_offloading_without_a_device_or_to_nowhere_is_told() -> None:
    place = "/zero_optimization/offload_optimizer"
    assert "no device" in one(zero(offload_optimizer={"pin_memory": True}), place).message
    assert one(zero(offload_optimizer={"device": "nvme"}), place).severity == "error"


def test_a_section_without_a_stage_does_nothing() -> None:
    config = {**MICRO, "zero_optimization": {"overlap_comm": True}}
    assert "ZeRO is off" in one(config, "/zero_optimization").message


def test_accelerate_needs_a_zero_section() -> None:
    assert [finding.severity for finding in found(MICRO, transformers=True)] == ["error"]
    assert found(MICRO) == ()


def test_fp16_and_bf16_exclude_each_other() -> None:
    assert one({**MICRO, "fp16": {"enabled": True}, "bf16": {"enabled": True}}, "/fp16/enabled").severity == "error"


@pytest.mark.parametrize(("version", "words"), [("0.16.4", "turns bf16 on"), ("0.17.1", "leaves bf16 off")])
def test_auto_precision_alone_depends_on_the_version(version: str, words: str) -> None:
    finding = one({**MICRO, "bf16": {"enabled": "auto"}}, "/bf16/enabled", deepspeed_version=version)
    assert (finding.severity, words in finding.message) == ("warning", True)


def test_amp_and_zero_exclude_each_other() -> None:
    assert one({**zero(1), "amp": {"enabled": True}}, "/amp/enabled").severity == "error"


@pytest.mark.parametrize("transformers", [True, False])
def test_the_activation_checkpointing_section_recomputes_nothing_by_itself(transformers: bool) -> None:
    config = {**zero(reduce_bucket_size=1000), "activation_checkpointing": {"partition_activations": True}}
    finding = one(config, "/activation_checkpointing", transformers=transformers)
    assert ("gradient_checkpointing" in (finding.hint or "")) == transformers
    off = {**zero(reduce_bucket_size=1000), "activation_checkpointing": {"partition_activations": False}}
    assert found(off, transformers=transformers) == ()


@pytest.mark.parametrize(
    ("config", "pointer", "severity", "hint"),
    [
        (zero(overlap_com=True), "/zero_optimization/overlap_com", "error", "overlap_comm"),
        (zero(prefetch_bucket=1), "/zero_optimization/prefetch_bucket", "error", "prefetch_bucket_size"),
        ({**MICRO, "gradient_cliping": 1.0}, "/gradient_cliping", "warning", "gradient_clipping"),
        ({**MICRO, "stage3_max_live_parameters": 1}, "/stage3_max_live_parameters", "warning", "zero_optimization"),
        ({**MICRO, "a/b~c": 1}, "/a~1b~0c", "warning", None),
    ],
)
def test_an_unknown_key_is_told_with_the_one_that_was_meant(
    config: dict[str, Any], pointer: str, severity: str, hint: str | None
) -> None:
    finding = one(config, pointer)
    assert finding.severity == severity
    assert (hint is None and finding.hint is None) or (hint or "") in (finding.hint or "")


def test_keys_belong_to_versions() -> None:
    leaf = zero(leaf_module={"classes": ["LlamaDecoderLayer"]})
    place = "/zero_optimization/leaf_module"
    assert "0.18.0" in one(leaf, place, deepspeed_version="0.16.4").message
    assert found(leaf, deepspeed_version="0.18.0") == ()
    gone = {**MICRO, "seq_parallel_comm_data_type": "fp32"}
    assert found(gone, deepspeed_version="0.16.4") == ()
    assert "0.16.4" in one(gone, "/seq_parallel_comm_data_type", deepspeed_version="0.16.5").message


def test_a_newer_deepspeed_than_the_tables_may_know_more() -> None:
    assert one(zero(brand_new=1), "/zero_optimization/brand_new", deepspeed_version="1.0.0").severity == "warning"
    assert one(zero(brand_new=1), "/zero_optimization/brand_new", deepspeed_version="0.19.5").severity == "error"


@pytest.mark.parametrize(
    "config",
    [
        {**MICRO, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}},
        {**MICRO, "gradient_clipping": "auto"},
    ],
)
def test_auto_is_filled_in_by_transformers_alone(config: dict[str, Any]) -> None:
    config = {**config, "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}}
    assert found(config, transformers=True) == ()
    assert [finding.severity for finding in found(config)] == ["error"]


def test_auto_that_nobody_fills_in_is_deepspeeds_default() -> None:
    config = zero(stage3_max_live_parameters="auto", reduce_bucket_size=1000)
    finding = one(config, "/zero_optimization/stage3_max_live_parameters", transformers=True)
    assert (finding.severity, "1000000000" in finding.message) == ("warning", True)


@pytest.mark.parametrize(
    ("path", "written", "arguments"),
    [
        ("/optimizer/params/lr", 3e-5, {"learning_rate": 1e-5}),
        ("/train_micro_batch_size_per_gpu", 1, {"per_device_train_batch_size": 2}),
        ("/gradient_accumulation_steps", 4, {"gradient_accumulation_steps": 1}),
        ("/gradient_clipping", 1.0, {"max_grad_norm": 0.5}),
        ("/bf16/enabled", False, {"bf16": True}),
        ("/optimizer/params/betas", [0.9, 0.95], {"adam_beta2": 0.999}),
        ("/train_batch_size", 16, {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 2}),
    ],
)
def test_numbers_that_differ_from_training_arguments_are_an_error(path: str, written: Any, arguments: Any) -> None:
    config: dict[str, Any] = zero(2, reduce_bucket_size=1000)
    if path != "/train_micro_batch_size_per_gpu":
        config["train_micro_batch_size_per_gpu"] = "auto"
    holder = config
    *sections, name = path[1:].split("/")
    for section in sections:
        holder = holder.setdefault(section, {})
    holder[name] = written
    told = found(config, transformers=True, arguments=arguments, world_size=4)
    assert [(each.pointer, each.severity) for each in told] == [(path, "error")]
    holder[name] = "auto"
    assert found(config, transformers=True, arguments=arguments, world_size=4) == ()


def test_auto_anywhere_means_transformers() -> None:
    assert has_auto({"optimizer": {"params": {"betas": [0.9, "auto"]}}})
    assert not has_auto({"optimizer": {"params": {"betas": [0.9, 0.99]}}})


@pytest.mark.parametrize("value", [None, 3, "x", [], {"enabled": []}])
@pytest.mark.parametrize("name", ["zero_optimization", "fp16", "optimizer", "tensor_parallel", "elasticity", "aio"])
def test_no_shape_of_a_section_stops_the_check(name: str, value: Any) -> None:
    for transformers in (True, False):
        findings({**MICRO, name: value}, transformers=transformers, world_size=2, arguments={"learning_rate": 1})


def test_pointers_are_escaped() -> None:
    assert pointer_of("a/b", "m~n", 0) == "/a~1b/m~0n/0"  # RFC 6901, section 3
