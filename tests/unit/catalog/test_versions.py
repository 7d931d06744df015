from __future__ import annotations

import pytest

from lj_image.catalog.versions import compare, fill, keeps_promise, public
from lj_image.errors import ManifestError


@pytest.mark.parametrize(
    ("promised", "found", "kept"),
    [
        ("12.8.0", "12.8", True),  # cudaRuntimeGetVersion knows no patch
        ("2.23.4.11", "2.23.4", True),  # ncclGetVersion knows no build of ACCL-N
        ("9.7.0.66", "9.7.0", True),
        ("9.7.0.66", "9.7.1", False),
        ("2.23.4.11", "2.25.1", False),  # the base's own NCCL is newer, and would be wrong
        ("12.8.0", "12", False),  # one number is no finding
        ("12.8", "12.8.0", False),  # a finder that says more than was promised has found something else
        ("4.48.3+ali", "4.48.3", False),
        ("4.48.3+ali", "4.48.3+ali", True),
        ("15.0.50.20240403-git", "15.0.50.20240403-git", True),
        ("12.8.0", "", False),
        ("2.5.1", "2.5.1+cu124", True),  # torch names its build of CUDA
        ("2.6.0", "2.6.0a0+ecf3bae40a.nv25.1", False),
    ],
)
def test_a_promise_is_kept_as_far_as_the_finder_can_see(promised: str, found: str, kept: bool) -> None:
    assert keeps_promise(promised, found) is kept


def test_the_public_part_drops_the_local_one() -> None:
    assert public("4.48.3+ali") == "4.48.3"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("2.44.0", "2.43.0", 1),
        ("2.6.0a0+ecf3bae40a.nv25.1", "2.6", -1),  # PEP 440: a pre-release sorts before its release
        ("15.0.50", "15.0.50.20240403-git", -1),
        ("15.0.50.20240403-git", "15.0.50.20240403-git", 0),
        ("12.8.0", "12.8", 0),
        ("4.48.3+ali", "4.48.3", 1),
    ],
)
def test_versions_compare_even_where_they_are_not_pep_440(left: str, right: str, expected: int) -> None:
    assert compare(left, right) == expected
    assert compare(right, left) == -expected


def test_a_tag_of_the_sister_family_is_made_of_component_versions() -> None:
    values = {"release": "25.10", "vllm": "0.11.0", "torch": "2.8.0.9+nv25.3", "cuda": "12.8", "date": "20251028"}
    template = "{release}-vllm{vllm}-pytorch{torch:major.minor}-cu{cuda:majorminor}-{date}-serverless"
    assert fill(template, values) == "25.10-vllm0.11.0-pytorch2.8-cu128-20251028-serverless"


def test_a_name_with_a_dash_is_a_name() -> None:
    assert fill("nccl{accl-n:major.minor.patch}", {"accl-n": "2.23.4.11"}) == "nccl2.23.4"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{relase}", "names 'relase'"),
        ("{release:minor}", "unknown form 'minor'"),
        ("{release:major.minor.patch}", "25.02 has no major.minor.patch"),
        ("{release", "expected '}'"),
    ],
)
def test_a_template_that_cannot_be_filled_says_why(template: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        fill(template, {"release": "25.02"})
