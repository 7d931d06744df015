"""Devices by name, and by what they call themselves."""

from __future__ import annotations

import pytest
from ljperf.devices import UnknownDeviceError, device_matching, device_named, device_names, found


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("NVIDIA H200", "h200-141g"),
        ("NVIDIA H20", "h20-96g"),
        ("NVIDIA GB300", "gb300-288g"),
        ("NVIDIA B300 SXM6 AC", "b300-288g"),
        ("NVIDIA GB200", "gb200-192g"),
        ("NVIDIA B200", "b200-192g"),
        ("NVIDIA H100 80GB HBM3", "h100-80g"),
        ("NVIDIA H100 PCIe", "h100-pcie-80g"),
        ("NVIDIA H100 NVL", "h100-nvl-94g"),
        ("NVIDIA L40S", "l40s-48g"),
        ("NVIDIA L4", "l4-24g"),
        ("NVIDIA A10", "a10-24g"),
        ("NVIDIA RTX A6000", "a6000-48g"),
        ("Tesla V100-SXM2-16GB", "v100-16g"),
    ],
)
def test_no_name_hides_another(reported: str, name: str) -> None:
    device = device_matching(reported)
    assert device is not None
    assert device.name == name


@pytest.mark.parametrize("reported", ["NVIDIA GH200 480GB", "NVIDIA H2000", "NVIDIA A1000", "Radeon", ""])
def test_a_device_that_only_looks_alike_is_not_taken_for_another(reported: str) -> None:
    assert device_matching(reported) is None


def test_the_reported_memory_picks_the_size() -> None:
    gib = 1024**3
    names = [device_matching("NVIDIA A100-SXM4", memory) for memory in (39 * gib, 79 * gib)]
    assert [device and device.name for device in names] == ["a100-40g", "a100-80g"]


def test_an_unknown_name_is_answered_with_the_closest_ones() -> None:
    with pytest.raises(UnknownDeviceError) as caught:
        device_named("h2o-96g")
    assert caught.value.exit_code == 2
    assert "h20-96g" in (caught.value.hint or "")


def test_a_name_without_its_size_and_in_capitals_is_understood() -> None:
    assert device_named("H800").name == "h800-80g"


@pytest.mark.parametrize(("name", "bf16"), [("h20-96g", 148e12), ("a100-80g", 312e12), ("h200-141g", 989e12)])
def test_peaks_are_the_published_dense_ones(name: str, bf16: float) -> None:
    assert device_named(name).peak("bf16") == bf16


def test_a_precision_that_a_device_lacks_has_no_peak() -> None:
    assert device_named("v100-32g").peak("bf16") is None


def test_names_are_unique() -> None:
    assert len(set(device_names())) == len(device_names())


def test_without_a_gpu_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert found() is None
