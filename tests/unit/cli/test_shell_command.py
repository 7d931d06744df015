from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")


def test_what_was_not_built_says_how_to_build_it(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    images = ["--images", str(write_catalog().root)]
    assert run([*images, "shell", "25.02", "--variant", "open", "--", "true"]) == 1
    assert "run: lj-image build 25.02 --variant open" in capsys.readouterr().err


def test_a_mount_that_is_none_is_told_before_anything_is_asked(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    images = ["--images", str(write_catalog().root)]
    assert run([*images, "shell", "25.02", "--mount", "models"]) == 2
    assert "not HOST:CONTAINER[:ro]" in capsys.readouterr().err
