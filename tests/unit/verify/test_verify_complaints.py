from __future__ import annotations

import pytest

from lj_image.verify.complaints import parse_complaints, unexpected

TORCH = (
    'torch 2.5.1 has requirement nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux" and '
    'platform_machine == "x86_64", but you have nvidia-cudnn-cu12 9.7.0.66.'
)
DALI = "nvidia-dali-cuda120 1.45.0 requires six, which is not installed."


def test_what_pip_says_is_read() -> None:
    torch, dali, other = parse_complaints(f"{TORCH}\n{DALI}\nx 1.0 is not supported on this platform\n")
    assert torch.distribution == "torch"
    assert torch.wants is not None
    assert torch.wants.startswith("nvidia-cudnn-cu12==9.1.0.70; platform")
    assert (dali.distribution, dali.wants) == ("nvidia-dali-cuda120", "six")
    assert other.distribution is None
    assert parse_complaints("No broken requirements found.\n") == ()


@pytest.mark.parametrize(
    ("line", "foreseen", "expected"),
    [
        (TORCH, {"torch": ["nvidia-cudnn-cu12==9.1.0.70"]}, True),
        (TORCH, {"Torch": ["nvidia_cudnn_cu12==9.1.0.70; platform_system == 'Linux'"]}, True),
        (TORCH, {"torch": ["nvidia-cudnn-cu12==9.2"]}, False),
        (TORCH, {"torch": ["nvidia-nccl-cu12==9.1.0.70"]}, False),
        (TORCH, {"vllm": ["nvidia-cudnn-cu12==9.1.0.70"]}, False),
        (DALI, {"nvidia-dali-cuda120": ["six<1.17,>=1.16"]}, True),
        ("x 1.0 is not supported on this platform", {"x": ["x"]}, False),
    ],
)
def test_a_complaint_is_foreseen_by_name_and_versions(
    line: str, foreseen: dict[str, list[str]], expected: bool
) -> None:
    assert (not unexpected(parse_complaints(line), foreseen)) is expected


def test_either_table_may_foresee_it() -> None:
    said = parse_complaints(f"{TORCH}\n{DALI}")
    release, base = {"torch": ["nvidia-cudnn-cu12==9.1.0.70"]}, {"nvidia-dali-cuda120": ["six"]}
    assert unexpected(said, release, base) == ()
    assert [item.line for item in unexpected(said, release)] == [DALI]
