"""Lazy layers in the hands of the reference implementation: Debian has it as a library, for programs of a few lines.

apt-get install golang-go golang-github-containerd-stargz-snapshotter-dev
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest
from scratch import Scratch

from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Streamed, Symlink, Written
from lj_image.builders.oci.estargz import EstargzWriter
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.oci.archive import archive
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.source import image_of, layer_in
from samples.estargz_reader import opened

LIBRARY = Path("/usr/share/gocode/src/github.com/containerd/stargz-snapshotter")
TIME = 1_700_000_000
MIB = 1024 * 1024
LARGE = random.Random(1).randbytes(25 * MIB)
"""Does not compress, so that what is fetched of it can be counted."""
TABLE_DIGEST = "containerd.io/snapshot/stargz/toc.digest"


@dataclass(frozen=True)
class Lazy:
    """A lazy layer on disk."""

    path: Path
    blob: LayerBlob
    annotations: Mapping[str, str]


def entries(unique: str = "") -> Iterator[Entry]:
    yield Folder("opt")
    yield Folder("opt/own", 0o2750, TIME, uid=100, gid=65534)
    yield File("opt/unique", 0o644, TIME, Written(unique.encode()))
    yield File("opt/empty", 0o644, TIME, Written(b""))
    yield File("opt/text.py", 0o755, TIME, Streamed(6_500, io.BytesIO(b"import torch\n" * 500)))
    yield File("opt/large.so", 0o755, TIME, Streamed(len(LARGE), io.BytesIO(LARGE)))
    yield Symlink("opt/link", "text.py", TIME)
    yield HardLink("opt/hard", "opt/text.py", 0o755, TIME)
    yield File(f"opt/{'long/' * 50}ünd", 0o644, TIME, Written(b"deep"))


def lazy(path: Path, unique: str = "") -> Lazy:
    with path.open("wb") as target, EstargzWriter(target) as writer:
        for entry in entries(unique):
            writer.add(entry)
        blob = writer.finish()
    return Lazy(path, blob, writer.annotations)


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Lazy:
    return lazy(tmp_path_factory.mktemp("lazy") / "layer.tar.gz")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that builds one of the programs around the reference implementation."""
    compiler = shutil.which("go")
    if compiler is None or not LIBRARY.is_dir():
        pytest.skip("apt-get install golang-go golang-github-containerd-stargz-snapshotter-dev")
    folder = tmp_path_factory.mktemp("go")

    def build(name: str) -> Path:
        source = Path(__file__).parent / "reference_estargz" / name / "main.go"
        environment = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "-buildvcs=false"}
        command = [compiler, "build", "-o", str(folder / name), str(source)]
        subprocess.run(command, env={**os.environ, **environment}, check=True)
        return folder / name

    return build


def test_the_reference_reader_reads_every_file_and_finds_it_true(layer: Lazy, reference: Callable[[str], Path]) -> None:
    words = [reference("reader"), layer.path, layer.annotations[TABLE_DIGEST]]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    contents = {
        ".no.prefetch.landmark": b"\x0f",
        "opt/text.py": b"import torch\n" * 500,
        "opt/hard": b"import torch\n" * 500,
        "opt/large.so": LARGE,
        f"opt/{'long/' * 50}ünd": b"deep",
    }
    expected = {f"{len(plain)} {hashlib.sha256(plain).hexdigest()} {name}" for name, plain in contents.items()}
    assert set(said.splitlines()) == expected


def test_the_reference_reader_refuses_another_digest_of_the_table(
    layer: Lazy, reference: Callable[[str], Path]
) -> None:
    words = [reference("reader"), layer.path, f"sha256:{'0' * 64}"]
    assert "invalid TOC JSON" in subprocess.run(words, capture_output=True, text=True, check=False).stderr


def test_the_reference_writer_makes_the_same_table_of_the_same_tar(
    layer: Lazy, reference: Callable[[str], Path], tmp_path: Path
) -> None:
    words = [reference("reader"), layer.path, layer.annotations[TABLE_DIGEST], tmp_path / "again.tar.gz"]
    subprocess.run(words, capture_output=True, check=True)
    ours, theirs = opened(layer.path.read_bytes()), opened((tmp_path / "again.tar.gz").read_bytes())
    assert [stated(row) for row in ours.entries] == [stated(row) for row in theirs.entries]


def stated(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row without what is zero, which is written or left out, and without its place, which is another."""
    return {key: value for key, value in row.items() if value and key != "offset"}


@dataclass
class Served:
    """Blobs by HTTP, as a registry gives them, with what was sent of each."""

    folder: Mapping[str, Path]
    sent_bytes: list[int] = field(default_factory=list)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = served.folder.get(self.path.rpartition("/")[2])
                if path is None:
                    self.send_error(404)
                    return
                total = path.stat().st_size
                found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
                first, last = (int(found[1]), min(int(found[2]), total - 1)) if found else (0, total - 1)
                self.send_response(206 if found else 200)
                if found:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(last - first + 1))
                self.end_headers()
                with path.open("rb") as file:
                    file.seek(first)
                    self.wfile.write(file.read(last - first + 1))
                served.sent_bytes.append(last - first + 1)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def served(layer: Lazy) -> Iterator[tuple[Served, str]]:
    served = Served({layer.blob.digest: layer.path})
    server = ThreadingHTTPServer(("127.0.0.1", 0), served.handler())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield served, f"localhost:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_snapshotter_shows_the_layer_and_fetches_only_what_is_read(
    layer: Lazy, served: tuple[Served, str], reference: Callable[[str], Path], tmp_path: Path
) -> None:
    if not os.access("/dev/fuse", os.W_OK) or os.geteuid() != 0:
        pytest.skip("no FUSE here, or not root")
    (tmp_path / "mounted").mkdir()
    program = reference("mount")
    log, address = served
    words = [f"{address}/stack:25.02", layer.blob.digest, layer.annotations[TABLE_DIGEST]]
    command = [program, *words, tmp_path / "mounted", tmp_path / "cache"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mount:
        assert mount.stdin is not None
        assert mount.stdout is not None
        try:
            assert mount.stdout.readline() == "mounted\n"
            look_around(tmp_path / "mounted", log)
        finally:
            mount.stdin.close()
    assert mount.returncode == 0


def look_around(root: Path, log: Served) -> None:
    assert sum(log.sent_bytes) < MIB  # footer, table, and what the snapshotter rounds up to
    assert sorted(path.name for path in root.iterdir()) == ["opt"]  # neither the landmark nor the table
    assert (root / "opt/text.py").read_bytes() == b"import torch\n" * 500
    assert (root / "opt/link").readlink() == Path("text.py")
    assert (root / "opt/hard").stat().st_ino == (root / "opt/text.py").stat().st_ino
    facts = (root / "opt/own").stat()
    assert (facts.st_mode & 0o7777, facts.st_uid, facts.st_gid) == (0o2750, 100, 65534)
    assert (root / "opt/large.so").stat().st_size == len(LARGE)
    with (root / "opt/large.so").open("rb", buffering=0) as file:
        file.seek(12 * MIB)
        assert file.read(4096) == LARGE[12 * MIB : 12 * MIB + 4096]
    assert 4 * MIB < sum(log.sent_bytes) < 13 * MIB  # a chunk, and those that the kernel reads ahead
    assert (root / "opt/large.so").read_bytes() == LARGE


def test_an_engine_that_knows_nothing_of_it_loads_it_as_any_layer(
    engine: docker.APIClient, scratch: Scratch, tmp_path: Path
) -> None:
    made = lazy(tmp_path / "layer.tar.gz", scratch.name("lazy"))
    blobs = BlobStore(tmp_path)
    digest = Digest.parse(made.blob.digest)
    blobs.adopt(made.path, digest)
    step = AddedLayer(Digest.parse(made.blob.diff_id), History("lazy", "2025-02-28T00:00:00Z"))
    config = ImageConfig.empty(Platform("linux", "amd64")).with_layers([step]).with_cmd(["/none"])
    found = Descriptor(MediaType.OCI_LAYER_GZIP, digest, made.blob.size_bytes, annotations=made.annotations)
    image = image_of("a lazy image", config, [layer_in(blobs, found, step.diff_id)])
    name = Reference.parse(f"{scratch.name('lazy')}:1")
    said = list(engine.load_image(archive(image, (name,))))
    assert not [message for message in said if "error" in message]
    assert engine.inspect_image(name.familiar)["RootFS"]["Layers"] == [made.blob.diff_id]
