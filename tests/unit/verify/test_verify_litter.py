from __future__ import annotations

import pytest

from lj_image.verify.litter import candidates, littered

LITTER = {
    "root/.cache/pip/http/x": "cache",
    "home/me/.cache/uv/x": "cache",
    "var/lib/apt/lists/mirror.example_InRelease": "cache",
    "var/cache/apt/archives/gdb.deb": "cache",
    "root/.netrc": "credentials",
    "root/.docker/config.json": "credentials",
    "root/.ssh/id_rsa": "private key",
    "wheels/torch.whl": "left-over wheel",
    "opt/x.whl": "left-over wheel",
    "tmp/build.log": "temporary file",
    "usr/local/lib/python3.12/dist-packages/a/__pycache__/b.cpython-312.pyc": "bytecode",
    "root/.bash_history": "shell history",
}
FINE = [
    "opt/vllm/cache.py",
    "usr/lib/python3/dist-packages/gdb/__pycache__/x.cpython-311.pyc",
    "var/lib/apt/lists/lock",
    "root/.wh..cache",
    "tmp/.wh..wh..opq",
    "etc/config.json",
]


@pytest.mark.parametrize(("path", "kind"), LITTER.items())
def test_litter_is_named_by_its_kind(path: str, kind: str) -> None:
    assert littered(candidates([path]), lambda paths: []) == {path: kind}


@pytest.mark.parametrize("path", FINE)
def test_what_belongs_there_is_left_alone(path: str) -> None:
    assert not candidates([path])


def test_what_a_package_brings_is_no_litter_but_credentials_are_always() -> None:
    paths = ["usr/lib/virtualenv/embed/pip.whl", "root/.netrc"]
    assert littered(candidates(paths), lambda asked: asked) == {"root/.netrc": "credentials"}


def test_bytecode_is_fine_where_it_was_asked_for() -> None:
    assert not candidates(["a/__pycache__/b.pyc"], bytecode=True)
