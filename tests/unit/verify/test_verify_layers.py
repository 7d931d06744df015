from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from lj_image.errors import EngineError
from lj_image.verify.layers import LayerScan, Needles, scan_image, scan_saved

SECRET = b"correct-horse"
Files = dict[str, bytes]


def tar_of(files: Files) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def saved_by_20_10(layers: list[bytes]) -> bytes:
    files: Files = {"abc.json": b"{}"}
    for number, layer in enumerate(layers):
        files |= {f"{number:064x}/VERSION": b"1.0", f"{number:064x}/json": b"{}", f"{number:064x}/layer.tar": layer}
    return tar_of(files | {"manifest.json": json.dumps([{"Config": "abc.json"}]).encode()})


def saved_by_25(layers: list[bytes]) -> bytes:
    blobs = [b'{"architecture": "amd64"}', *layers]
    files = {f"blobs/sha256/{digest(blob)}": blob for blob in blobs}
    return tar_of(files | {"index.json": b"{}", "manifest.json": b"[]", "oci-layout": b"{}"})


def saved_compressed(layers: list[bytes]) -> bytes:
    """As a containerd store saves what the OCI builder made: gzip of many members."""
    return saved_by_25(
        [b"".join(gzip.compress(layer[at : at + 700]) for at in range(0, len(layer), 700)) for layer in layers]
    )


def chunks(content: bytes, size: int = 1000) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


def saved_in_zstd(layers: list[bytes]) -> bytes:
    """As a containerd store saves what was pulled with layers in zstd."""
    return saved_by_25([zstandard.compress(layer) for layer in layers])


LAYERS = [
    tar_of({"base/file": SECRET}),
    tar_of({"opt/a": b"x" * 5000 + SECRET, "opt/.wh.b": b"", "opt/c": b"harmless"}),
    tar_of({f"opt/{SECRET.decode()}": b""}),
]
IDS = [f"sha256:{digest(layer)}" for layer in LAYERS]


@pytest.mark.parametrize("saved", [saved_by_20_10, saved_by_25, saved_compressed, saved_in_zstd])
def test_layers_of_every_form_are_found_by_their_diff_id(saved: object) -> None:
    found = {scan.diff_id: scan for scan in scan_saved(chunks(saved(LAYERS)), frozenset(IDS[1:]), Needles([SECRET]))}
    assert found == {
        IDS[1]: LayerScan(IDS[1], ("opt/a", "opt/.wh.b", "opt/c"), ("opt/a",), len(LAYERS[1])),
        IDS[2]: LayerScan(IDS[2], (f"opt/{SECRET.decode()}",), (f"opt/{SECRET.decode()}",), len(LAYERS[2])),
    }


def test_a_secret_across_two_blocks_is_found() -> None:
    block = 1024 * 1024
    for cut in range(1, len(SECRET)):
        layer = tar_of({"f": b"x" * (block - cut) + SECRET + b"y" * 100})
        (scan,) = scan_saved(
            chunks(saved_by_20_10([layer]), 99_999), frozenset([f"sha256:{digest(layer)}"]), Needles([SECRET])
        )
        assert scan.secrets == ("f",), cut


def test_secrets_that_are_found_everywhere_by_chance_are_not_looked_for() -> None:
    assert Needles([b"", b"abc", SECRET]).needles == (SECRET,)


class SavingEngine:
    """Saves one image, and counts how often."""

    timeout = 60

    def __init__(self, saved: bytes) -> None:
        self.saved = saved
        self.asked = 0

    def get_image(self, image: str, chunk_size: int) -> Iterator[bytes]:
        assert self.timeout is None, "an engine may be silent for minutes before the first byte"
        self.asked += 1
        return chunks(self.saved, chunk_size)


def test_a_layer_is_read_once_for_the_same_secrets(tmp_path: Path) -> None:
    engine = SavingEngine(saved_by_25(LAYERS))
    first = scan_image(engine, "i", IDS[1:], Needles([SECRET]), tmp_path)
    assert scan_image(engine, "i", IDS[1:], Needles([SECRET]), tmp_path) == first
    assert (engine.asked, engine.timeout) == (1, 60)
    scan_image(engine, "i", IDS[1:], Needles([b"another"]), tmp_path)
    assert engine.asked == 2
    assert not any(SECRET in path.name.encode() for path in (tmp_path / "scans").iterdir())


def test_a_damaged_memory_is_read_again(tmp_path: Path) -> None:
    engine = SavingEngine(saved_by_20_10(LAYERS))
    scan_image(engine, "i", IDS, Needles([SECRET]), tmp_path)
    next((tmp_path / "scans").glob("*.json")).write_text("{")
    assert len(scan_image(engine, "i", IDS, Needles([SECRET]), tmp_path)) == 3
    assert engine.asked == 2


def test_a_layer_that_is_not_handed_out_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="without its layer"):
        scan_image(SavingEngine(saved_by_25(LAYERS[:1])), "i", IDS, Needles([SECRET]), tmp_path)


def test_memory_does_not_grow_with_the_layer() -> None:
    size = 200 * 1024 * 1024
    member = tarfile.TarInfo("big")
    member.size = size
    block = bytes(1024 * 1024)
    layer_size = 512 + size + 1024

    def stream() -> Iterator[bytes]:
        outer = tarfile.TarInfo("0/layer.tar")
        outer.size = layer_size
        yield outer.tobuf(tarfile.GNU_FORMAT) + member.tobuf(tarfile.GNU_FORMAT)
        for _ in range(size // len(block)):
            yield block
        yield bytes(1024 + -layer_size % 512 + 1024)

    tracemalloc.start()
    assert not list(scan_saved(stream(), frozenset(["sha256:unknown"]), Needles([SECRET])))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * 1024 * 1024
