from __future__ import annotations

import pytest

from lj_image.catalog.lint.mentions import MentionFinder, says
from lj_image.catalog.schema import ComponentEntry

FINDER = MentionFinder(
    {
        "cuda": ComponentEntry(title="CUDA"),
        "torch": ComponentEntry(title="PyTorch", aliases=["Torch"]),
        "flash-attn": ComponentEntry(title="FlashAttention", aliases=["flash_attn"]),
        "flash-attn-3": ComponentEntry(title="FlashAttention 3"),
        "transformers": ComponentEntry(title="Transformers"),
        "ray": ComponentEntry(title="Ray"),
        "vllm": ComponentEntry(title="vLLM"),
        "perf": ComponentEntry(title="perf"),
    }
)


def found(text: str) -> list[tuple[str, str | None]]:
    return [(item.component, item.version) for item in FINDER.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CUDA 12.8.1", [("cuda", "12.8.1")]),
        ("cuda (12.8.1) and RAY v2.44.", [("cuda", "12.8.1"), ("ray", "2.44")]),
        ("Torch and related components are upgraded to 2.6.0.7.", [("torch", "2.6.0.7")]),
        ("PyTorch 系列升级至 2.6.0.7,配合Ray 2.44.0。", [("torch", "2.6.0.7"), ("ray", "2.44.0")]),
        ("升级Transformers到4.49.0+ali版本", [("transformers", "4.49.0+ali")]),
        ("vLLM 0.8.2.dev0+g61c7a1b8.d20250325.cu128 is new", [("vllm", "0.8.2.dev0+g61c7a1b8.d20250325.cu128")]),
        ("flash attn 2.7.2, FlashAttention 3 3.0.0b1", [("flash-attn", "2.7.2"), ("flash-attn-3", "3.0.0b1")]),
        ("FlashAttention 3.0.0b1", [("flash-attn", "3.0.0b1")]),
        ("from Ray 2.42.1 to 2.44.0", [("ray", "2.44.0")]),
        ("CUDA stays at 12.8.0", [("cuda", "12.8.0")]),
    ],
)
def test_a_component_and_the_version_after_it_are_a_mention(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CUDA 12",  # one number may be a count
        "CUDA 12.4 or later",
        "CUDA 12.4+",
        "CUDA 12.4及以上",
        "vLLM 0.8.2.dev0 or later",
        "perf 1.5x faster, perf 1.5 times, perf 2.5%",
        "faster than vLLM 0.7.2",
        "相比 vLLM 0.7.2",
        "ray-llm 1.2, xray 2.4 and registry.example/ray 2.4",
        "array 2.44",
        "vLLM with NumPy 1.26.4",
        "vLLM repairs issue 13693",
    ],
)
def test_what_is_no_promise_is_no_mention(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("Ray goes from 2.44.0 back to 2.43.0", "2.44.0", "2.43.0"),
        ("Ray 从 2.42.1 升级到 2.44.0", "2.42.1", "2.44.0"),
        ("Ray 2.42.1 -> 2.44.0", "2.42.1", "2.44.0"),
        ("moved away from Ray 2.42.1", "2.42.1", None),
    ],
)
def test_the_version_that_something_comes_from_is_the_one_before(text: str, before: str, after: str | None) -> None:
    (mention,) = FINDER.find(text)
    assert (mention.version_before, mention.version) == (before, after)


@pytest.mark.parametrize(
    ("text", "upgraded"),
    [
        ("CUDA is upgraded to 12.8.1", ["cuda"]),
        ("CUDA升级至12.8.1", ["cuda"]),
        ("upgrades vLLM to 0.8.5, Ray to 2.44.0", ["vllm", "ray"]),
        ("CUDA has been upgraded.", ["cuda"]),
        ("Upgraded vLLM to 0.8.5, which works with CUDA 12.8.0", ["vllm"]),
        ("Better upgrades. Ray is at 2.44.0", []),
    ],
)
def test_an_upgrade_is_bound_to_what_was_upgraded(text: str, upgraded: list[str]) -> None:
    assert [item.component for item in FINDER.find(text) if item.upgraded] == upgraded


@pytest.mark.parametrize(
    ("promised", "mentioned", "is_it"),
    [
        ("2.44.0", "2.44", True),
        ("12.8.0", "12.8.1", False),
        ("12.8", "12.8.1", False),  # the table promises less than the text
        ("4.48.3+ali", "4.48.3", True),
        ("1.5.2", "1.5.2+ali", False),
        ("2.3.0+5de3e148", "2.3.0+5de3e14", True),
        ("0.8.2.dev0+g61c7a1b8", "0.8.2.dev0", True),
        ("15.0.50.20240403-git", "15.0.50", True),
    ],
)
def test_a_text_may_shorten_a_version(promised: str, mentioned: str, is_it: bool) -> None:
    assert says(promised, mentioned) is is_it
