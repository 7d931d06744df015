from __future__ import annotations

import pytest
from packaging.tags import Tag

from lj_image.lock.tags import best_file, tag_ranks


@pytest.mark.parametrize(
    ("files", "best"),
    [
        # a compiled wheel before a pure one, its own Python before the stable ABI, a wheel before the source
        (["a-1-py3-none-any.whl", "a-1-cp311-cp311-manylinux_2_17_x86_64.whl"], 1),
        (["a-1-cp38-abi3-manylinux1_x86_64.whl", "a-1-cp311-cp311-manylinux1_x86_64.whl"], 1),
        (["a-1.tar.gz", "a-1-py2.py3-none-any.whl"], 1),
        (["a-1.tar.gz", "a-1-cp312-cp312-manylinux_2_17_x86_64.whl"], 0),
        # the newest C library that the base still has
        (["a-1-cp311-cp311-manylinux_2_17_x86_64.whl", "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"], 1),
        (["a-1-cp311-cp311-manylinux_2_39_x86_64.whl", "a-1-cp311-cp311-manylinux2014_x86_64.whl"], 1),
        (["a-1-cp311-cp311-manylinux_2_17_aarch64.whl", "a-1-cp311-cp311-linux_x86_64.whl"], 1),
        (["a-1-cp311-cp311-musllinux_1_2_x86_64.whl", "a-1-py3-none-any.whl"], 1),
        # one file with several tags counts by its best
        (["a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux_2_38_x86_64.whl", "a-1-py3-none-any.whl"], 0),
        # the higher build number (PEP 427)
        (["a-1-2-py3-none-any.whl", "a-1-10-py3-none-any.whl"], 1),
        (["a-1-cp311-cp311-win_amd64.whl", "a-1.zip"], 1),
    ],
)
def test_best_file_for_python_311_with_glibc_236_on_amd64(files: list[str], best: int) -> None:
    ranks = tag_ranks("3.11.2", "2.36", "amd64")
    assert best_file(files, ranks) == files[best]
    assert best_file(reversed(files), ranks) == files[best]


def test_nothing_fits_when_there_is_only_another_platform() -> None:
    ranks = tag_ranks("3.11", "2.36", "amd64")
    assert best_file(["a-1-cp311-cp311-macosx_11_0_arm64.whl", "not-a-wheel.whl", "a-1.exe"], ranks) is None


def test_arm64_has_no_platform_older_than_glibc_217() -> None:
    ranks = tag_ranks("3.12", "2.39", "arm64")
    assert Tag("cp312", "cp312", "manylinux2014_aarch64") in ranks
    assert Tag("cp312", "cp312", "manylinux1_aarch64") not in ranks
    assert Tag("cp312", "cp312", "manylinux_2_39_x86_64") not in ranks
