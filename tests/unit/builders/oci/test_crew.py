"""Several layers at once, in processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lj_image.builders.oci import crew
from lj_image.builders.oci.crew import assemble_layers
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.errors import BuildError
from unit.builders.oci.oci_recipes import recipe_of

LARGE = 64 * 1024 * 1024
"""As the crew is told, so that it takes processes."""


def recipes(folder: Path, *names: str) -> list[tuple[LayerRecipe, int]]:
    return [(recipe_of(folder, name, random.Random(name).randbytes(500)), LARGE + at) for at, name in enumerate(names)]


def cache_in(folder: Path) -> LayerCache:
    cache = LayerCache(folder / "cache")
    cache.layout()
    return cache


def nothing(at: int, layer: CachedLayer) -> None:
    """Be told."""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_layers_come_in_the_order_of_their_recipes_and_each_is_told_once(workers: int, tmp_path: Path) -> None:
    cache, told = cache_in(tmp_path), {}
    wanted = recipes(tmp_path, "a", "b", "c", "d")
    found = assemble_layers(wanted, tmp_path / "cache", workers=workers, done=told.__setitem__)
    assert [layer.key for layer in found] == [recipe.key() for recipe, _ in wanted]
    assert told == dict(enumerate(found))
    assert all(cache.blobs.has(layer.digest) for layer in found)


def test_one_processor_and_small_work_take_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_in(tmp_path)
    monkeypatch.setattr(crew, "ProcessPoolExecutor", lambda *arguments, **options: pytest.fail("a process"))
    wanted = recipes(tmp_path, "a", "b")
    assert len(assemble_layers(wanted, tmp_path / "cache", workers=1, done=nothing)) == 2
    small = [(recipe, 1000) for recipe, _ in recipes(tmp_path, "c", "d")]
    assert len(assemble_layers(small, tmp_path / "cache", workers=2, done=nothing)) == 2


def test_a_layer_that_fails_is_raised_and_what_was_finished_is_kept(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    good, bad = recipes(tmp_path, "good", "bad")
    bad[0].wheels[0].path.write_bytes(b"no zip")
    # The larger one begins first, and with two workers both have begun.
    with pytest.raises(BuildError, match=r"bad-1\.0-py3-none-any\.whl"):
        assemble_layers([good, bad], tmp_path / "cache", workers=2, done=nothing)
    assert cache.find(good[0].key(), None) is not None
    assert cache.find(bad[0].key(), None) is None
    assert list(cache.folder.glob(".layer-*")) == []


def test_a_worker_that_is_killed_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_in(tmp_path)

    monkeypatch.setattr(crew, "assemble_layer", _killed)
    with pytest.raises(BuildError, match="was killed") as caught:
        assemble_layers(recipes(tmp_path, "a", "b"), tmp_path / "cache", workers=2, done=nothing)
    assert "run the build again" in str(caught.value.hint)


def _killed(*arguments: object, **options: object) -> None:
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


IDLE = """
import multiprocessing, os, signal, time
from lj_image.builders.oci.crew import pool_for
if __name__ == "__main__":
    with pool_for(1) as pool:
        worker = pool.submit(os.getpid).result()
        time.sleep(0.2)  # until it waits for work again
        os.kill(worker, signal.SIGINT)
        while multiprocessing.active_children():
            time.sleep(0.01)
"""


def test_a_process_that_waits_for_work_ends_by_ctrl_c_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr
