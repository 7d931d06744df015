"""Releases: what is compared of them with a lock, and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from diff_catalog import Bench, bench

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Platform
from lj_image.config import Config
from lj_image.errors import ArtifactError, LockError
from lj_image.lock.lockfile import lock_path
from lj_image.lock.store import ArtifactStore
from lj_image.plan import plan_digest
from lj_image.release.diff.compare import Diff
from lj_image.release.diff.releases import contents_of_release
from lj_image.release.diff.sides import diff_releases
from lj_image.release.record import Built, Record, Records
from samples.locks import distribution
from standins.wheels import module, wheel

KIB = 1024


@pytest.fixture
def made(write_catalog: Callable[..., Catalog], tmp_path: Path, config: Config) -> Bench:
    return bench(write_catalog, tmp_path, config)


def compared(made: Bench, **options: bool) -> Diff:
    return diff_releases(made.release("25.02"), made.release("25.03"), made.config.cache_dir, **options)


def told(found: Diff) -> dict[str, tuple[str, str | None]]:
    return {item.id: (item.kind, item.reason) for item in found.components or ()}


def test_without_a_lock_components_alone_are_compared_and_it_says_so(made: Bench) -> None:
    found = compared(made)
    assert told(found) == {"tool": ("down", "1.4.2 was withdrawn"), "library": ("up", None)}
    assert (found.distributions, found.layers) == (None, None)
    assert found.notes == (
        "25.02: no lock, so its components alone are compared; run: lj-image lock 25.02 --variant open",
        "25.03: no lock, so its components alone are compared; run: lj-image lock 25.03 --variant open",
    )


def test_with_locks_distributions_and_layers_are_compared(made: Bench) -> None:
    made.lock("25.02", more=[distribution("common", "1.0", "shared"), distribution("gone", "1.0", "tool")])
    made.lock("25.03", more=[distribution("common", "1.0", "shared"), distribution("fresh", "2.0", "shared")])
    found = compared(made)
    assert [(item.name, item.kind, item.before, item.after, item.component) for item in found.distributions or ()] == [
        ("fresh", "added", None, "2.0", "shared"),
        ("gone", "removed", "1.0", None, "tool"),
        ("lib-open", "up", "2.23.4", "2.24.0", "library"),
        ("tool", "down", "1.4.2", "1.4.1", "tool"),
    ]
    assert found.layers is not None
    # kit stays; tool, library, shared and the constraints follow, of which the constraints are what they were.
    assert (found.layers.before, found.layers.after, found.layers.in_place) == (5, 5, 1)
    assert [layer.title for layer in found.layers.new] == ["tool", "library", "shared"]
    assert found.layers.pull.by_content_bytes == (1 + 1 + 2) * 10 * KIB
    constraints = found.layers.pull.by_position_bytes or 0
    assert 0 < constraints - 40 * KIB < KIB
    assert not found.base_changed


def test_a_stale_lock_is_as_good_as_none(made: Bench) -> None:
    release = made.lock("25.02")
    path = release.folder / "releases" / "25.02.yaml"
    path.write_text(path.read_text().replace("tool: 1.4.2+ali", "tool: 1.4.3+ali"))
    contents = contents_of_release(made.release("25.02"), made.config.cache_dir)
    assert contents.distributions is None
    assert contents.notes == (
        "a stale lock, so its components alone are compared; run: lj-image lock 25.02 --variant open",
    )


def test_a_lock_edited_by_hand_is_an_error(made: Bench) -> None:
    path = lock_path(made.lock("25.02"))
    path.write_text(path.read_text().replace("tool==1.4.2", "tool==1.4.3"))
    with pytest.raises(LockError, match="edited by hand"):
        compared(made)


def test_the_lock_of_another_release_is_an_error(made: Bench) -> None:
    lock_path(made.release("25.03")).parent.mkdir()
    lock_path(made.release("25.03")).write_text(lock_path(made.lock("25.02")).read_text())
    with pytest.raises(LockError, match=r"25\.03-open\.txt is the lock of 25\.02-open"):
        compared(made)


def test_the_record_of_this_very_plan_names_its_builder(made: Bench) -> None:
    release = made.lock("25.03")
    from lj_image.lock.lockfile import read_lock
    from lj_image.plan import plan

    digest = plan_digest(plan(release, read_lock(lock_path(release))))
    built = Built("sha256:1", "t", "i", digest, "l", "docker", "b", "2025-03-01T00:00:00+00:00", 1.0, 1)
    records = Records(made.config.cache_dir, "tiny")
    records.update("25.03-open", lambda _: Record("tiny", "25.03", "open", built))
    assert contents_of_release(release, made.config.cache_dir).builder == "docker"
    records.path("25.03-open").write_text("{")
    contents = contents_of_release(release, made.config.cache_dir)
    assert contents.builder is None
    assert "the record of 25.03-open is damaged" in contents.notes[0]


def test_licences_and_files_are_read_from_the_store(made: Bench) -> None:
    old = made.store(wheel("tool", "1.4.2", module("tool", "1.4.2")))
    new = made.store(wheel("tool", "1.4.1", {**module("tool", "1.4.1"), "tool-1.4.1.data/scripts/run": b"#!python\n"}))
    made.lock("25.02", artifacts={"tool": old})
    made.lock("25.03", artifacts={"tool": new})
    found = compared(made, files=True)
    licences = {item.name: item.licence_after for item in found.distributions or ()}
    assert licences == {"lib-open": None, "tool": ""}
    packages = "usr/local/lib/python3.11/dist-packages"
    assert [(item.path, item.kind, item.after_bytes) for item in found.files or () if "dist-info" not in item.path] == [
        ("usr/local/bin/run", "added", 9),
        (f"{packages}/tool/__init__.py", "changed", len("__version__ = '1.4.1'\n")),
    ]
    assert "25.03: licence of 1 distribution not known here: lj-image fetch 25.03 --variant open" in found.notes
    assert "25.02: files of 1 distribution not known here: lj-image fetch 25.02 --variant open" in found.notes


def test_a_remembered_licence_needs_no_wheel(made: Bench) -> None:
    metadata = b"Metadata-Version: 2.4\nName: tool\nVersion: 1.4.1\nLicense-Expression: MIT\n"
    made_of = {"tool-1.4.1.dist-info/METADATA": metadata}
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tool-1.4.1.dist-info/METADATA", made_of["tool-1.4.1.dist-info/METADATA"])
    new = made.store(("tool-1.4.1-py3-none-any.whl", packed.getvalue()))
    made.lock("25.02")
    made.lock("25.03", artifacts={"tool": new})
    for _ in range(2):
        assert {item.name: item.licence_after for item in compared(made).distributions or ()}["tool"] == "MIT"
        ArtifactStore(made.config.cache_dir).drop(new.sha256)


def test_a_file_of_the_store_that_is_no_wheel_is_an_error(made: Bench) -> None:
    made.lock("25.02")
    made.lock("25.03", artifacts={"tool": made.store(("tool-1.4.1-py3-none-any.whl", b"no zip"))})
    with pytest.raises(ArtifactError, match=r"tool-1\.4\.1-py3-none-any\.whl cannot be read") as raised:
        compared(made)
    assert "fetch it again" in str(raised.value.hint)


def test_dockerfiles_are_compared_as_rendered(made: Bench) -> None:
    made.lock("25.02")
    made.lock("25.03")
    lines = compared(made, dockerfile=True).dockerfile or ()
    assert lines[:2] == ("--- 25.02/Dockerfile", "+++ 25.03/Dockerfile")
    assert any(line.startswith("+") and "tool 1.4.1" in line for line in lines)


def test_files_without_a_lock_are_said_not_to_be_there(made: Bench) -> None:
    assert "25.02: no files without a lock" in compared(made, files=True).notes


def test_another_platform_is_compared_with_its_own_components(
    write_catalog: Callable[..., Catalog], config: Config
) -> None:
    from samples.tiny import BASE, RELEASE

    both = RELEASE + "architectures: [amd64, arm64]\n"
    catalog = write_catalog(r25_02=both, r25_03='release: "25.03"\nprevious: "25.02"\ncomponents: {tool: 1.5.0}\n')
    (catalog.root / "tiny" / "bases" / "base-arm64.yaml").write_text(BASE.replace("amd64", "arm64"))
    made, arm = Bench(catalog, config), Platform("linux", "arm64")
    one, other = made.release("25.02", platform=arm), made.release("25.03", platform=arm)
    found = diff_releases(one, other, config.cache_dir)
    assert "library" not in (found.before.components or {})
    assert [item.id for item in found.components or ()] == ["tool"]


def test_two_releases_need_neither_engine_nor_network_nor_rich(made: Bench) -> None:
    made.lock("25.02")
    made.lock("25.03")
    code = (
        "import sys; from lj_image.cli import run; "
        f"run(['--images', {str(made.catalog.root)!r}, 'diff', '25.02', '25.03', '--variant', 'open']); "
        "print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "1 DOWN" in done.stdout
    for library in ("docker", "httpx", "rich", "jinja2", "zipfile", "email.parser"):
        assert f"'{library}'" not in done.stderr
