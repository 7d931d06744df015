"""Two small images of a real engine, and the archives that it saves of them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from scratch import Scratch

from lj_image.cli import run
from standins.wheels import distribution, module

PACKAGES = "usr/local/lib/python3.11/dist-packages"


@dataclass(frozen=True)
class Pair:
    """Two images and the folder of their archives."""

    older: str
    newer: str
    folder: Path


def context(dockerfile: str, files: Mapping[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in {"Dockerfile": dockerfile.encode(), **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    packed.seek(0)
    return packed


def build(api: docker.APIClient, tag: str, dockerfile: str, files: Mapping[str, bytes]) -> str:
    events = list(api.build(fileobj=context(dockerfile, files), custom_context=True, tag=tag, rm=True, decode=True))
    assert not [event for event in events if "error" in event], events
    return tag


def installed(name: str, version: str) -> dict[str, bytes]:
    files = distribution(name, version, module(name, version))
    return {f"{name}-{version}/{PACKAGES}/{path}": content for path, content in files.items()}


@pytest.fixture(scope="module")
def pair(engine: docker.APIClient, base_image: str, scratch: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Build an image, and one on it in which a distribution went down, one is new and a file is gone."""
    first = f"FROM {base_image}\nCOPY six-1.17.0 /\nRUN echo old > /etc/motd && echo gone > /etc/gone\n"
    older = build(engine, scratch.name("diff:older"), first, installed("six", "1.17.0"))
    second = (
        f"FROM {older}\nRUN rm -r /{PACKAGES}/six-1.17.0.dist-info /etc/gone && echo newer > /etc/motd\n"
        "COPY six-1.16.0 /\nCOPY ray-2.42.1 /\n"
    )
    newer = build(engine, scratch.name("diff:newer"), second, installed("six", "1.16.0") | installed("ray", "2.42.1"))
    folder = tmp_path_factory.mktemp("archives")
    for name, tag in (("older.tar", older), ("newer.tar", newer)):
        with (folder / name).open("wb") as file:
            for chunk in engine.get_image(tag):
                file.write(chunk)
    return Pair(older, newer, folder)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)


def compared(capsys: pytest.CaptureFixture[str], before: str, after: str) -> dict[str, object]:
    capsys.readouterr()
    assert run(["diff", before, after, "--files", "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def told(found: dict[str, object]) -> object:
    """Return what must be the same however the images were read."""
    parts = ("components", "distributions", "files", "licences")
    layers = {name: found["layers"][name] for name in ("before", "after", "in_place", "reused")}  # type: ignore[index]
    return {**{name: found[name] for name in parts}, "layers": layers}


def test_two_images_are_compared_to_the_file(
    engine: docker.APIClient, pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, pair.older, pair.newer)
    changed = {item["name"]: (item["kind"], item["before"], item["after"]) for item in found["distributions"]}  # type: ignore[attr-defined,index]
    assert changed == {"six": ("down", "1.17.0", "1.16.0"), "ray": ("added", None, "2.42.1")}
    files = {item["path"]: item["kind"] for item in found["files"]}  # type: ignore[attr-defined,index]
    assert (files["etc/gone"], files["etc/motd"]) == ("removed", "changed")
    assert files[f"{PACKAGES}/six-1.17.0.dist-info/METADATA"] == "removed"
    assert files[f"{PACKAGES}/six/__init__.py"] == "changed"
    # The engine's own list of layers is the witness.
    ids = [engine.inspect_image(name)["RootFS"]["Layers"] for name in (pair.older, pair.newer)]
    layers = found["layers"]
    assert (layers["in_place"], layers["after"]) == (len(ids[0]), len(ids[1]))  # type: ignore[index]
    assert [layer["identity"] for layer in layers["new"]] == ids[1][len(ids[0]) :]  # type: ignore[index]
    assert found["components"] is None


@pytest.mark.parametrize("form", ["archive-archive", "archive-image", "image-archive"])
def test_an_archive_tells_the_same_as_the_image(
    form: str, engine: docker.APIClient, pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {
        "archive": (str(pair.folder / "older.tar"), str(pair.folder / "newer.tar")),
        "image": (pair.older, engine.inspect_image(pair.newer)["Id"]),
    }
    one, _, other = form.partition("-")
    assert told(compared(capsys, sides[one][0], sides[other][1])) == told(compared(capsys, pair.older, pair.newer))


def test_an_image_and_its_archive_do_not_differ(pair: Pair) -> None:
    assert run(["diff", pair.newer, str(pair.folder / "newer.tar"), "--files", "--exit-code"]) == 0


def test_a_saved_image_that_was_cut_is_told(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.tar"
    with (pair.folder / "older.tar").open("rb") as file:
        cut.write_bytes(file.read(3_000_000))
    assert run(["diff", pair.older, str(cut)]) == 1
    assert f"{cut} is damaged" in capsys.readouterr().err


def test_an_image_that_the_engine_has_not_is_told(
    engine: docker.APIClient, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", scratch.name("absent:1"), scratch.name("absent:2")]) == 2
    assert f"the engine has no image {scratch.name('absent:1')}" in capsys.readouterr().err
