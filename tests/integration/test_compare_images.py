"""Images of a real engine: what `compare` makes of their layers is what a container of theirs sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from scratch import Scratch
from test_diff_images import build

from lj_image.cli import run
from lj_image.oci.streams import ChunkReader
from lj_image.release.compare.differences import Difference, differences
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.sides import engine_side
from lj_image.release.compare.tree import LayerTree, lay

# A file capability, as `setcap cap_net_bind_service+ep` writes it (capabilities(7), "File capability extended
# attribute versioning").
CAPABILITY = "0100000200040000000000000000000000000000"
FIRST = f"""
FROM BASE
RUN mkdir -p /srv/a/b /srv/gone /srv/opaque/deep /srv/folder && echo 1 > /srv/a/b/x && ln /srv/a/b/x /srv/a/hard && \\
    ln -s ../a/b/x /srv/a/soft && mkfifo -m 600 /srv/a/pipe && echo 2 > /srv/gone/y && echo 3 > /srv/opaque/deep/z && \\
    cp /bin/true /srv/a/true && chmod 4711 /srv/a/true && chown 7:8 /srv/a/soft /srv/a/b && chmod 1777 /srv/a/b && \\
    echo 4 > /srv/folder/f
RUN python3 -c "import os; os.setxattr('/srv/a/hard', 'security.capability', bytes.fromhex('{CAPABILITY}'))" || true
"""
SECOND = """
FROM FIRST
RUN rm -r /srv/gone /srv/opaque /usr/share/doc && mkdir /srv/opaque && echo 5 > /srv/opaque/new && \\
    rm -r /srv/folder && ln -s a /srv/folder && rm /srv/a/pipe && mkdir /srv/a/pipe && touch /srv/a/pipe/in
RUN ln /srv/a/b/x /srv/a/second && chmod 700 /srv/a && mv /srv/a/true /srv/true
"""
OF_A_CONTAINER = ("dev", "proc", "sys", ".dockerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")
"""What an engine puts into every container, and so into what it exports."""


@dataclass(frozen=True)
class Images:
    """Two images on one base."""

    first: str
    second: str


@pytest.fixture(scope="module")
def images(engine: docker.APIClient, base_image: str, scratch: Scratch) -> Images:
    """Build two images whose layers do all that layers can do to those below."""
    first = build(engine, scratch.name("compare:first"), FIRST.replace("BASE", base_image), {})
    second = build(engine, scratch.name("compare:second"), SECOND.replace("FIRST", first), {})
    return Images(first, second)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)


def saved(engine: docker.APIClient, image: str, path: Path) -> str:
    with path.open("wb") as file:
        for chunk in engine.get_image(image):
            file.write(chunk)
    return str(path)


def laid(engine: docker.APIClient, image: str) -> LayerTree:
    side = engine_side(engine, image, None, name=image, say=print)
    read = dict(side.layers(frozenset(side.diff_ids), frozenset()))
    return lay(read[diff_id] for diff_id in side.diff_ids)


def exported(engine: docker.APIClient, image: str) -> LayerTree:
    container = engine.create_container(image, ["true"], host_config=engine.create_host_config(network_mode="none"))
    try:
        return scan_layer(ChunkReader(engine.export(container["Id"])))[1]
    finally:
        engine.remove_container(container["Id"], force=True)


def apart(found: tuple[Difference, ...]) -> Iterator[tuple[str, str, str, str]]:
    """Yield what differs, without what belongs to a container and not to its image."""
    for item in found:
        if item.path and not item.path.startswith(OF_A_CONTAINER):
            yield item.path, item.aspect, item.before, item.after


@pytest.mark.parametrize("which", ["first", "second"])
def test_layers_over_each_other_are_what_the_engine_exports(
    which: str, engine: docker.APIClient, images: Images
) -> None:
    image = getattr(images, which)
    tree = laid(engine, image)
    assert list(apart(differences(tree.facts, exported(engine, image).facts))) == []
    assert len(tree.facts) > 1000


def test_what_a_step_did_is_what_is_told(images: Images, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", images.first, images.second, "--json", "--ignore", "usr/share/doc"]) == 1
    found = json.loads(capsys.readouterr().out)
    told = {(item["path"], item["aspect"]): item for item in found["differences"] if item["excuse"] is None}
    assert {key for key in told if not key[1].startswith("only")} == {
        ("srv/a", "mode"),
        ("srv/a/pipe", "type"),
        ("srv/folder", "type"),
    }
    assert {path for path, aspect in told if aspect == "only in A"} == {
        "srv/a/true",
        "srv/folder/f",
        "srv/gone",
        "srv/gone/y",
        "srv/opaque/deep",
        "srv/opaque/deep/z",
    }
    assert {path for path, aspect in told if aspect == "only in B"} == {
        "srv/a/pipe/in",
        "srv/a/second",
        "srv/opaque/new",
        "srv/true",
    }
    assert told[("srv/true", "only in B")]["after"].startswith("file 4711 0:0")
    assert found["expected"] > 100


def test_an_image_is_the_same_as_its_archive_read_anew(
    engine: docker.APIClient, images: Images, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = saved(engine, images.second, tmp_path / "second.tar")
    assert run(["compare", images.second, archive, "--strict", "--fresh"]) == 0
    assert capsys.readouterr().out.startswith("same: ")
    assert run(["compare", engine.inspect_image(images.second)["Id"], archive, "--strict"]) == 0
    assert "shared layers" in capsys.readouterr().out
    assert run(["compare", archive, images.first]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent:1", "absent:1"), "the engine has no image absent:1"),
        (("FIRST", "FIRST", "--platform", "linux/s390x"), "alone, not for linux/s390x"),
    ],
)
def test_what_the_engine_has_not_is_told(
    arguments: tuple[str, ...], message: str, images: Images, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *(word.replace("FIRST", images.first) for word in arguments)]) == 2
    assert message in capsys.readouterr().err
