from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from ljperf.benchmark.losses import NoLossError, chunked, install
from ljperf.models.building import build
from ljperf.models.catalog import model_named

TINY = model_named("tiny")


def gradients(loss: torch.Tensor, *of: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(loss, of)


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    hidden = torch.randn(50, 16, dtype=dtype, requires_grad=True)
    weight = torch.randn(97, 16, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(0, 97, (50,))


@pytest.mark.parametrize("chunk", [1, 7, 50, 1000])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.02)])
def test_chunks_give_torchs_loss_and_gradients(chunk: int, dtype: torch.dtype, tolerance: float) -> None:
    hidden, weight, labels = operands(dtype)
    plain = torch.nn.functional.cross_entropy((hidden @ weight.t()).float(), labels)
    ours = chunked(hidden, weight, labels, chunk)
    assert float(ours.detach()) == pytest.approx(float(plain.detach()), rel=1e-6 if dtype == torch.float32 else 1e-3)
    for found, expected in zip(gradients(3 * ours, hidden, weight), gradients(3 * plain, hidden, weight), strict=True):
        off = (found - expected).abs().max() / expected.abs().max()
        assert float(off) <= tolerance * (3 if chunk == 1 and dtype == torch.bfloat16 else 1)


def test_no_tensor_of_all_tokens_times_the_vocabulary_is_kept() -> None:
    hidden, weight, labels = operands(torch.float32)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda x: x):
        chunked(hidden, weight, labels, 10)
    assert sorted(kept) == [50 * 16, 97 * 16]


def losses_of(loss: Any, autocast: bool = False) -> tuple[float, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model = build(TINY, dtype=torch.float32)
    install(model, loss, chunk_tokens=16)
    ids = torch.randint(0, TINY.vocab, (2, 24))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
    value.backward()
    return float(value.detach()), {name: parameter.grad for name, parameter in model.named_parameters()}  # type: ignore[misc]


def test_a_model_with_the_chunked_loss_has_the_plain_ones_loss_gradients_and_names() -> None:
    plain, expected = losses_of("plain")
    ours, found = losses_of("chunked")
    assert ours == pytest.approx(plain, rel=1e-6)
    assert list(found) == list(expected)
    for name in expected:
        assert float((found[name] - expected[name]).abs().max()) <= 1e-5 * float(expected[name].abs().max()), name


def test_under_autocast_both_losses_compute_in_its_type() -> None:
    plain, expected = losses_of("plain", autocast=True)
    ours, found = losses_of("chunked", autocast=True)
    assert ours == pytest.approx(plain, rel=1e-3)
    head = "lm_head.weight"
    assert float((found[head] - expected[head]).abs().max()) <= 0.02 * float(expected[head].abs().max())


def test_liger_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    monkeypatch.setitem(sys.modules, "liger_kernel.transformers", None)
    with pytest.raises(NoLossError, match="Liger's loss cannot be loaded") as raised:
        install(build(TINY, dtype=torch.float32), "liger")
    assert "pip install liger-kernel" in str(raised.value.hint)


def test_a_model_without_a_plain_head_is_refused() -> None:
    with pytest.raises(NoLossError, match="no plain matrix"):
        install(torch.nn.Linear(2, 2), "chunked")
