from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.cli import run
from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import ArtifactError
from lj_image.lock.lock import Lock, LockedDistribution
from lj_image.lock.newer import Ground, newer_than
from lj_image.lock.outdated import not_asked, outdated, way_forward
from lj_image.lock.store import ArtifactStore
from lj_image.lock.uvtool import OfferedFile
from unit.lock.loopback import Loopback, sdist, status, wheel
from unit.lock.releases import archive, pip, release

GROUND = Ground.of(release(tool=pip(("tool", "1.0"))))


def file(name: str, requires_python: str | None = None, *, yanked: bool = False) -> OfferedFile:
    return OfferedFile(name, f"https://index.example/{name}", 1, "0" * 64, yanked, requires_python)


def test_newest_final_version_is_chosen_and_not_the_last_in_the_alphabet() -> None:
    files = [file(f"tool-{version}-py3-none-any.whl") for version in ("1.9", "1.10", "2.0rc1", "0.9")]
    assert newer_than("1.0", files, GROUND).fitting == "1.10"
    assert newer_than("1.0", files, GROUND, pre=True).fitting == "2.0rc1"
    assert newer_than("1.10", files, GROUND).fitting is None


def test_a_yanked_version_is_as_good_as_absent() -> None:
    files = [file("tool-2.0-py3-none-any.whl", yanked=True), file("tool-1.5-py3-none-any.whl")]
    assert newer_than("1.0", files, GROUND).fitting == "1.5"


def test_a_version_that_needs_a_newer_python_is_told_apart() -> None:
    files = [file("tool-2.0-py3-none-any.whl", ">=3.12"), file("tool-1.5-py3-none-any.whl", ">=3.8")]
    found = newer_than("1.0", files, GROUND)
    assert (found.fitting, found.elsewhere) == ("1.5", "2.0")
    assert found.reason is not None
    assert found.reason.text == "2.0 needs Python >=3.12; the base has 3.11"


def test_a_version_without_a_file_for_the_platform_is_told_apart() -> None:
    files = [file("tool-2.0-cp311-cp311-win_amd64.whl"), file("tool-1.9-cp311-cp311-manylinux_2_39_x86_64.whl")]
    found = newer_than("1.0", files, GROUND)
    assert found.fitting is None
    assert found.reason is not None
    assert found.reason.kind == "platform"
    assert "glibc 2.36" in found.reason.text


def test_a_source_distribution_fits_every_platform() -> None:
    assert newer_than("1.0", [file("tool-2.0.tar.gz")], GROUND).fitting == "2.0"


@pytest.mark.parametrize("name", ["tool-2.0.exe", "tool-ten-py3-none-any.whl", "README", "tool.tar.gz"])
def test_files_that_are_no_release_count_as_absent(name: str) -> None:
    assert newer_than("1.0", [file(name)], GROUND).fitting is None


def test_a_specifier_that_cannot_be_read_does_not_hide_a_version() -> None:
    assert newer_than("1.0", [file("tool-2.0-py3-none-any.whl", ">=3.x")], GROUND).fitting == "2.0"


def test_a_local_version_of_the_vendor_is_compared_with_its_own_kind() -> None:
    files = [file("tool-4.48.3+ali2-py3-none-any.whl"), file("tool-4.48.3-py3-none-any.whl")]
    assert newer_than("4.48.3+ali", files, GROUND).fitting == "4.48.3+ali2"


@dataclass
class WithMetadata(Loopback):
    """An index that serves the metadata of its files, too."""

    def _page(self, project: str) -> tuple[bytes, str]:
        text, kind = super()._page(project)
        page = json.loads(text)
        for entry in page["files"]:
            entry["core-metadata"] = True
        return json.dumps(page).encode(), kind

    def body(self, path: str) -> tuple[bytes, str] | None:
        if path.endswith(".metadata"):
            name, version = path.rpartition("/")[2].split("-")[:2]
            head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            return (head + REQUIRES.get(name, "")).encode(), "text/plain"
        return super().body(path)


REQUIRES = {
    "vllm": "Requires-Dist: numpy<2\nRequires-Dist: ray\n",
    "ray": "Requires-Dist: numpy>=1\n",
    "helper": "Requires-Dist: numpy>=2\nRequires-Dist: absent>9\n",
}
VERSIONS = {"vllm": "0.7.2", "ray": "2.42.1", "numpy": "1.26.4", "helper": "1.0", "cublas": "12.8"}
REQUIRED_BY = {"ray": ("vllm",), "numpy": ("ray", "vllm"), "cublas": ("vllm",)}


@pytest.fixture
def wanted() -> Release:
    return release(
        vllm=pip(("vllm", "0.7.2")),
        cuda=pip(("cublas", "12.8"), overrides=True),
        accl_n=archive("accl.tar.gz"),
        ours=pip(("ours", "1.0"), index="vendor"),
    )


@pytest.fixture
def lock(wanted: Release, store: ArtifactStore) -> Lock:
    """Return a lock of which nothing is in the store."""

    def locked(name: str, version: str, index: str = "pypi") -> LockedDistribution:
        made, content = wheel(name, version)
        artifact = store.add([content], made, "wheel")
        store.drop(artifact.sha256)
        return LockedDistribution(name, version, artifact, index, "shared", REQUIRED_BY.get(name, ()))

    items = [*(locked(name, version) for name, version in VERSIONS.items()), locked("ours", "1.0", "vendor")]
    return Lock(wanted.key, (), tuple(sorted(items, key=lambda item: item.name)), (), "")


@pytest.fixture
def offered(serve: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch) -> WithMetadata:
    """Return an index on which everything has its locked version and a newer one."""
    from unit.lock.loopback import start

    loopback = WithMetadata()
    server = start(loopback)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("lj_image.lock.http.backoff_s", lambda attempt: 0.0)
    for name, version in VERSIONS.items():
        loopback.offer(name, version)
        loopback.offer(name, "100.0")
    yield loopback  # type: ignore[misc]
    server.shutdown()
    server.server_close()


def config_for(index: Loopback, tmp_path: Path) -> Config:
    return Config(None, ConfigFile(indexes={"pypi": Source(index.simple)}), tmp_path / "cache")


def texts(found: object) -> dict[str, list[str]]:
    return {item.name: [hold.text for hold in item.holds] for item in found}  # type: ignore[attr-defined]


def test_what_holds_each_back_is_named(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    found = outdated(wanted, lock, config_for(offered, tmp_path), store, every=True)
    assert texts(found) == {
        "cublas": ["the release says 12.8, for everything"],
        "helper": ["100.0 requires numpy>=2; 1.26.4 is locked"],
        "numpy": ["vllm 0.7.2 requires numpy<2"],
        "ours": [],
        "ray": [],
        "vllm": ["the release says 0.7.2"],
    }
    by_name = {item.name: item for item in found}
    assert way_forward(wanted, by_name["ray"]) == "lj-image lock 25.02 --variant open --upgrade ray"
    assert way_forward(wanted, by_name["numpy"]) is None


def test_an_index_without_an_address_is_told_in_its_lines(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    found = {item.name: item for item in outdated(wanted, lock, config_for(offered, tmp_path), store)}
    assert set(found) == {"cublas", "vllm", "ours"}
    assert found["ours"].unknown == "the config has no address for the index 'vendor'"
    assert not_asked(wanted) == ("accl-n (archive)",)


def test_each_project_is_asked_for_once(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    outdated(wanted, lock, config_for(offered, tmp_path), store, every=True)
    for name in VERSIONS:
        assert len(offered.asked(f"/simple/{name}/")) == 1, name


def test_requirements_are_read_from_the_store_first(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    for name in ("vllm", "ray"):
        item = lock.distribution(name)
        assert item is not None
        store.add([wheel(name, item.version)[1]], item.artifact.file, "wheel")
    found = texts(outdated(wanted, lock, config_for(offered, tmp_path), store, every=True))
    assert found["numpy"] == []  # those wheels require nothing
    assert not offered.asked("vllm-0.7.2-py3-none-any.whl.metadata")


def test_what_is_not_known_of_a_parent_is_said(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    made, content = sdist("vllm", "0.7.2")
    source = store.add([content], made, "sdist")
    store.drop(source.sha256)
    items = tuple(
        LockedDistribution("vllm", "0.7.2", source, "pypi", "vllm") if item.name == "vllm" else item
        for item in lock.distributions
    )
    changed = Lock(lock.key, (), items, (), "")
    found = texts(outdated(wanted, changed, config_for(offered, tmp_path), store, every=True))
    assert found["numpy"] == ["perhaps vllm: what it requires is not known here"]


def test_a_wheel_built_from_a_source_says_what_the_source_requires(store: ArtifactStore) -> None:
    from lj_image.lock.metadata import stored_metadata

    made, content = sdist("deepspeed", "0.16")
    source = store.add([content], made, "sdist")
    built = store.add([wheel("deepspeed", "0.16", ["numpy<2"])[1]], "deepspeed-0.16-py3-none-any.whl", "wheel")
    note = store.root.parent / "wheels" / "a.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"file": built.file, "sha256": built.sha256, "source": {"sha256": source.sha256}}))
    (note.parent / "b.json").write_text("{")
    assert "Requires-Dist: numpy<2" in (stored_metadata(source, store) or "")


def test_an_index_that_refuses_is_an_error(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    offered.credentials = ("me", "word")
    with pytest.raises(ArtifactError, match="the index 'pypi' refuses us: 401"):
        outdated(wanted, lock, config_for(offered, tmp_path), store)


def test_a_moment_of_trouble_is_waited_for(
    wanted: Release, lock: Lock, offered: WithMetadata, store: ArtifactStore, tmp_path: Path
) -> None:
    offered.faults[""] = [status(503)]  # one: several requests go at once, and two could meet the same one
    assert len(outdated(wanted, lock, config_for(offered, tmp_path), store)) == 3


def test_without_a_network_the_error_comes_soon(
    wanted: Release, lock: Lock, store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("lj_image.lock.http.backoff_s", lambda attempt: 0.0)
    nowhere = Config(None, ConfigFile(indexes={"pypi": Source("http://127.0.0.1:9/simple")}), tmp_path)
    with pytest.raises(ArtifactError, match="the index 'pypi' cannot be reached"):
        outdated(wanted, lock, nowhere, store)


def test_the_command_shows_a_table_and_json(
    write_catalog: Callable[..., Catalog],
    offered: WithMetadata,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    uv_cache: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(f"indexes: {{pypi: {{url: {offered.simple}}}}}\n")
    monkeypatch.setenv("LJ_IMAGE_CONFIG", str(tmp_path / "config.yaml"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))
    for name, version in {"kit-core": "12.8.57", "kit-extra": "12.8.61", "tool": "1.4.2", "lib-open": "2.23.4"}.items():
        offered.offer(name, version)
    offered.offer("tool", "1.5")
    images = ["--images", str(write_catalog().root)]
    assert run([*images, "lock", "25.02", "--variant", "open"]) == 0
    capsys.readouterr()
    assert run([*images, "outdated", "25.02", "--variant", "open"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "COMPONENT  DISTRIBUTION  LOCKED  NEWEST  HELD BACK BY",
        "tool       tool          1.4.2   1.5     the release says 1.4.2",
        "1 of 4 distributions have newer versions",
        "no index lists the versions of: runtime (base)",
    ]
    assert run([*images, "outdated", "25.02", "--variant", "open", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [item["newest"] for item in printed["distributions"]] == [None, None, None, "1.5"]
    assert run([*images, "outdated"]) == 2
    assert "nothing was built on this machine" in capsys.readouterr().err
