"""The catalog as git had it, in a folder that is gone afterwards."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from diff_catalog import Bench, bench

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from lj_image.config import Config
from lj_image.errors import ManifestError, UsageError
from lj_image.release.diff.revisions import catalog_at, resolver_in


@pytest.fixture
def made(write_catalog: Callable[..., Catalog], tmp_path: Path, config: Config) -> Bench:
    """Return a catalog in a folder below the top of a repository, with one commit and an edit after it."""
    found = bench(write_catalog, tmp_path, config)
    project = found.catalog.root.parent
    git(project, "init", "-q", "-b", "main")
    found.lock("25.02")
    found.lock("25.03")
    commit(project)
    edit(found, "25.03", "tool: {version: 1.4.1+ali, downgrade", "tool: {version: 1.4.0+ali, downgrade")
    found.lock("25.03")
    return found


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that temporary ones are made in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    return folder


def git(project: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=project, check=True, capture_output=True)


def commit(project: Path) -> None:
    git(project, "add", "images")
    git(project, "commit", "-q", "-m", "one")


def edit(made: Bench, name: str, old: str, new: str) -> None:
    path = made.catalog.root / "tiny" / "releases" / f"{name}.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_release_at_a_revision_is_what_was_committed(
    made: Bench, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--images", str(made.catalog.root), "diff", "25.03@main", "25.03", "--variant", "open"]
    assert run([*arguments, "--exit-code"]) == 1
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "tiny 25.03@main → 25.03, variant open, linux/amd64"
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("Tool "))
    assert row[1:5] == ["1.4.1", "1.4.0", "DOWN", "1.4.2"]
    assert list(temporary.iterdir()) == []


def test_the_catalog_may_lie_below_the_top_of_the_repository(
    write_catalog: Callable[..., Catalog], tmp_path: Path, config: Config
) -> None:
    root = write_catalog().root
    git(tmp_path.parent, "init", "-q", str(tmp_path))
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "own.j2").write_text("x")
    inner = tmp_path / "project"
    inner.mkdir()
    root.rename(inner / "images")
    (tmp_path / "templates").rename(inner / "templates")
    git(tmp_path, "add", "project")
    git(tmp_path, "commit", "-q", "-m", "one")
    with catalog_at(inner / "images", "HEAD") as images:
        assert (images / "tiny" / "image.yaml").exists()
        assert (images.parent / "templates" / "own.j2").exists()
        release = resolver_in(images, config)("25.02", "open", platform="linux/amd64", only_configured=False)
        assert release.name == "25.02"
    assert not images.exists()


@pytest.mark.parametrize("revision", ["nowhere", "", "--help", "HEAD:images", "main~9"])
def test_a_revision_that_git_does_not_know_is_told(made: Bench, revision: str, temporary: Path) -> None:
    with pytest.raises(UsageError, match="git knows no revision") as raised, catalog_at(made.catalog.root, revision):
        pass
    assert "git fetch" in str(raised.value.hint)
    assert list(temporary.iterdir()) == []


def test_outside_git_nothing_has_revisions(write_catalog: Callable[..., Catalog]) -> None:
    with pytest.raises(UsageError, match="is not in git") as raised, catalog_at(write_catalog().root, "main"):
        pass
    assert "leave out @main" in str(raised.value.hint)


def test_a_revision_before_the_catalog_has_none(write_catalog: Callable[..., Catalog]) -> None:
    project = write_catalog().root.parent
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "none")
    with (
        pytest.raises(UsageError, match="the revision main has no folder images/"),
        catalog_at(project / "images", "main"),
    ):
        pass


def test_without_git_it_is_said(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git cannot be run"), catalog_at(made.catalog.root, "main"):
        pass


def test_a_fault_of_the_committed_file_is_placed_as_git_writes_it(made: Bench, temporary: Path, config: Config) -> None:
    edit(made, "25.03", "tool:", "tol:")
    commit(made.catalog.root.parent)
    with pytest.raises(ManifestError) as raised, catalog_at(made.catalog.root, "main") as images:
        resolver_in(images, config)("25.03", "open", platform=None, only_configured=False)
    assert raised.value.message == "at main: unknown component 'tol'"
    assert str(raised.value.location) == "main:images/tiny/releases/25.03.yaml:4:3"
    assert list(temporary.iterdir()) == []
