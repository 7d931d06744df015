"""A release that was resolved before is taken from its snapshot, and only when nothing has changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog import resolve as resolution
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Platform, Release
from lj_image.catalog.resolved import made_from, resolve_once
from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import ManifestError, UsageError
from lj_image.snapshot import Snapshots
from samples.tiny import BASE, IMAGE, RELEASE

Write = Callable[..., Catalog]
Ask = Callable[..., Release]

WITH_TREE = RELEASE + "  extra: '1'\n"
TREE_IMAGE = IMAGE + "  extra:\n    title: Extra\n    sources: {open: {kind: files, tree: rootfs}}\n"


@pytest.fixture
def resolutions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each release that is really resolved."""
    found: list[str] = []
    real = resolution.resolve

    def counted(catalog: Catalog, config: Config, release: str, **options: object) -> Release:
        found.append(release)
        return real(catalog, config, release, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(resolution, "resolve", counted)
    return found


@pytest.fixture
def ask(tmp_path: Path, config: Config) -> Ask:
    """Return a function that asks for a release as a new process would: nothing is held in memory."""

    def ask(catalog: Catalog, name: str = "25.02", **options: object) -> Release:
        chosen = options.pop("config", config)
        options.setdefault("variant", "open")
        return resolve_once(Catalog(catalog.root), chosen, Snapshots(tmp_path / "kept"), name, **options)  # type: ignore[arg-type]

    return ask


def test_a_release_is_resolved_once_and_is_the_same_the_second_time(
    write_catalog: Write, ask: Ask, resolutions: list[str]
) -> None:
    catalog = write_catalog()
    assert ask(catalog) == ask(catalog) == ask(catalog)
    assert resolutions == ["25.02"]


@pytest.mark.parametrize(
    ("options", "twice"),
    [
        ({"variant": "vendor"}, 2),
        ({"variant": None}, 2),
        ({"platform": Platform("linux", "amd64")}, 2),
        ({"overridden": {"tool": "1.5"}}, 2),
        ({"only_configured": False}, 2),
        ({"base_known": False}, 2),
        ({"overridden": {}}, 1),
    ],
)
def test_another_question_is_answered_anew(
    options: dict[str, object], twice: int, write_catalog: Write, ask: Ask, resolutions: list[str], config: Config
) -> None:
    catalog = write_catalog()
    ask(catalog)
    assert ask(catalog, **options) == resolution.resolve(catalog, config, "25.02", **({"variant": "open"} | options))  # type: ignore[arg-type]
    assert len(resolutions) - 1 == twice


@pytest.mark.parametrize("file", ["image.yaml", "releases/25.02.yaml", "releases/25.01.yaml", "bases/base.yaml"])
def test_a_changed_file_is_read_again(file: str, write_catalog: Write, ask: Ask, resolutions: list[str]) -> None:
    heir = 'release: "25.02"\nprevious: "25.01"\n'
    catalog = write_catalog(r25_01=RELEASE.replace("25.02", "25.01"), r25_02=heir)
    ask(catalog)
    path = catalog.root / "tiny" / file
    path.write_text(path.read_text() + "# looked over\n")
    ask(catalog)
    assert resolutions == ["25.02", "25.02"]


def test_a_changed_version_is_seen_though_size_and_time_of_the_file_are_the_same(
    write_catalog: Write, ask: Ask
) -> None:
    import os

    catalog = write_catalog()
    path = catalog.root / "tiny" / "releases" / "25.02.yaml"
    times = path.stat()
    assert _version(ask(catalog), "tool") == "1.4.2+ali"
    path.write_text(RELEASE.replace("1.4.2", "1.4.3"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert _version(ask(catalog), "tool") == "1.4.3+ali"


def test_what_the_config_has_decides_anew(write_catalog: Write, ask: Ask, config: Config) -> None:
    catalog = write_catalog()
    source = Source(url="https://vendor.example/simple")
    vendors = Config(None, ConfigFile(indexes={"vendor": source}, archives={"library": source}), config.cache_dir)
    assert [ask(catalog, variant=None, config=each).variant for each in (config, vendors)] == ["open", "vendor"]


def test_another_image_with_such_a_release_makes_the_name_ambiguous(write_catalog: Write, ask: Ask) -> None:
    catalog = write_catalog()
    ask(catalog)
    other = catalog.root / "other"
    (other / "releases").mkdir(parents=True)
    (other / "image.yaml").write_text(IMAGE.replace("image: tiny", "image: other"))
    (other / "releases" / "25.02.yaml").write_text(RELEASE)
    with pytest.raises(UsageError, match="several images"):
        ask(catalog)


def test_an_error_is_found_again_and_its_mending_is_seen(
    write_catalog: Write, ask: Ask, resolutions: list[str]
) -> None:
    catalog = write_catalog(r25_02=RELEASE.replace("tool:", "tol:"))
    for _ in range(2):
        with pytest.raises(ManifestError, match="unknown component 'tol'"):
            ask(catalog)
    ask(write_catalog())
    assert len(resolutions) == 3


def test_a_tree_that_went_away_is_noticed(write_catalog: Write, ask: Ask, tmp_path: Path) -> None:
    catalog = write_catalog(image=TREE_IMAGE, r25_02=WITH_TREE)
    tree = catalog.root / "tiny" / "rootfs"
    tree.mkdir()
    assert _version(ask(catalog), "extra") == "1"
    tree.rmdir()
    with pytest.raises(ManifestError, match="no folder of tiny"):
        ask(catalog)
    tree.symlink_to(tmp_path)
    with pytest.raises(ManifestError, match="no folder of tiny"):
        ask(catalog)


def test_a_file_that_changes_while_it_is_read_leaves_nothing_behind(
    write_catalog: Write, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = write_catalog()
    path = catalog.root / "tiny" / "releases" / "25.02.yaml"
    real = resolution.resolve

    def meanwhile(*arguments: object, **options: object) -> Release:
        path.write_text(RELEASE.replace("1.4.2", "1.4.3"))
        return real(*arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(resolution, "resolve", meanwhile)
        assert _version(ask(catalog), "tool") == "1.4.3+ali"
    path.write_text(RELEASE)
    assert _version(ask(catalog), "tool") == "1.4.2+ali"


def test_a_text_of_the_notes_that_comes_or_goes_is_a_change(write_catalog: Write, config: Config) -> None:
    root = write_catalog().root
    text = root / "tiny" / "notes" / "usage.en.md.j2"
    text.parent.mkdir()
    states = [made_from(root, config, "notes")]
    for step in (text.touch, text.unlink):
        step()
        states.append(made_from(root, config, "notes"))
    assert states[0] == states[2] != states[1]


def test_a_release_knows_the_variants_in_which_it_can_be_had(write_catalog: Write, ask: Ask) -> None:
    refused = RELEASE.replace('"25.02"', '"25.03"') + "variants: {vendor: {unavailable: not yet}}\n"
    catalog = write_catalog(r25_03=refused)
    assert ask(catalog).offered == ("vendor", "open")
    assert ask(catalog, "25.03").offered == ("open",)


def test_a_file_that_cannot_be_read_is_nobodys_concern_but_the_readers(write_catalog: Write, ask: Ask) -> None:
    catalog = write_catalog()
    (catalog.root / "tiny" / "bases" / "folder.yaml").mkdir()
    assert ask(catalog) == ask(catalog)


def test_a_release_resolved_before_needs_neither_validators_nor_yaml(write_catalog: Write, tmp_path: Path) -> None:
    write_catalog(base=BASE)
    (tmp_path / "config.yaml").write_text("mirrors: {registry.example: local.example}\n")
    code = (
        "import sys; from lj_image.cli import run; code = run(['refs', '25.02', '--variant', 'open']); "
        "print(code, sorted({'pydantic', 'yaml', 'jinja2', 'docker'} & set(sys.modules)))"
    )
    environ = {"LJ_IMAGE_CONFIG": str(tmp_path / "config.yaml"), "LJ_IMAGE_CACHE": str(tmp_path / "cache")}
    shown = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environ)
        for _ in range(2)
    ]
    assert shown[0].stdout.replace("['pydantic', 'yaml']", "[]") == shown[1].stdout
    assert shown[1].stdout.endswith("0 []\n")
    assert shown[0].stderr == shown[1].stderr == "config: mirror registry.example → local.example\n"


def _version(release: Release, component: str) -> str:
    found = release.component(component)
    assert found is not None
    return found.version
