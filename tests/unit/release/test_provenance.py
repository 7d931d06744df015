from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lj_image.release.provenance import revision_and_time


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an image's folder in a repository whose last commit touches something else."""
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-02-28T10:00:00Z")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    image = tmp_path / "images" / "tiny"
    image.mkdir(parents=True)
    (image / "image.yaml").write_text("image: tiny\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "tiny: first")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-03-01T10:00:00Z")
    (tmp_path / "README").write_text("other\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "readme: other")
    return image


def test_the_revision_is_the_last_commit_that_touched_the_image(folder: Path) -> None:
    first = git(folder, "rev-parse", "HEAD~1")
    assert revision_and_time(folder) == (first, "2025-02-28T10:00:00Z")


def test_what_is_not_committed_is_said(folder: Path) -> None:
    (folder / "image.yaml").write_text("image: other\n")
    assert revision_and_time(folder)[0].endswith("-dirty")


def test_source_date_epoch_goes_before_the_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1735689600")
    assert revision_and_time(folder)[1] == "2025-01-01T00:00:00Z"


def test_outside_git_the_release_date_stands_for_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert revision_and_time(tmp_path, "2025-02-28") == ("unknown", "2025-02-28T00:00:00Z")
    assert not revision_and_time(tmp_path)[1].startswith("1970")
