"""An engine of a few lines that has images, and saves them in the forms that real engines have."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import requests
from docker.errors import ImageNotFound

from samples.images import gzipped, sha256
from standins.assembled import AT

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def config_of(layers: Sequence[bytes]) -> bytes:
    """Return a configuration as engines write it: not in canonical JSON."""
    fields = {
        "architecture": "amd64",
        "os": "linux",
        "created": AT,
        "config": {"Env": ["A=b"], "Cmd": ["/x"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}" for layer in layers]},
        "history": [{"created": AT, "created_by": f"RUN step {at}"} for at in range(len(layers))],
    }
    return json.dumps(fields, indent=1).encode()


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of files, by name, as engines save: they walk a folder."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return target.getvalue()


def saved_before_25(layers: Sequence[bytes]) -> bytes:
    """Return what `docker save` wrote until 24: layers by ids that say nothing of their content."""
    config = config_of(layers)
    folders = [hashlib.sha256(b"v1 id %d" % at).hexdigest() for at, _ in enumerate(layers)]
    listed = {"Config": f"{sha256(config)}.json", "RepoTags": None, "Layers": [f"{item}/layer.tar" for item in folders]}
    files = {f"{sha256(config)}.json": config, "manifest.json": json.dumps([listed]).encode()}
    for folder, layer in zip(folders, layers, strict=True):
        files |= {f"{folder}/VERSION": b"1.0", f"{folder}/json": b"{}", f"{folder}/layer.tar": layer}
    return packed(files)


def saved_since_25(layers: Sequence[bytes]) -> bytes:
    """Return what newer engines with plain layers save: all of it as blobs, by digest."""
    config = config_of(layers)
    return packed({f"blobs/sha256/{sha256(item)}": item for item in (config, *layers)} | {"manifest.json": b"[]"})


def saved_by_containerd(layers: Sequence[bytes], *, attested: bool = False) -> tuple[str, bytes, bytes]:
    """Return image id, manifest and archive of an engine that keeps blobs; with an index if there is an attestation."""
    config, blobs = config_of(layers), [gzipped(layer) for layer in layers]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _described(config, "application/vnd.oci.image.config.v1+json"),
            "layers": [_described(blob, "application/vnd.oci.image.layer.v1.tar+gzip") for blob in blobs],
        },
        indent=3,
    ).encode()
    root, every = manifest, [config, *blobs, manifest]
    if attested:
        said = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": _described(b"{}", "x/y"), "layers": []})
        entries = [
            _described(manifest, MANIFEST) | {"platform": {"os": "linux", "architecture": "amd64"}},
            _described(said.encode(), MANIFEST)
            | {
                "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
                "platform": {"os": "unknown", "architecture": "unknown"},
            },
        ]
        root = json.dumps({"schemaVersion": 2, "mediaType": _INDEX, "manifests": entries}).encode()
        every += [root, said.encode(), b"{}"]
    top = {"schemaVersion": 2, "manifests": [_described(root, _INDEX if attested else MANIFEST)]}
    files = {f"blobs/sha256/{sha256(item)}": item for item in every}
    files |= {"index.json": json.dumps(top).encode(), "oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
    return f"sha256:{sha256(root)}", manifest, packed(files)


_INDEX = "application/vnd.oci.image.index.v1+json"


def _described(content: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{sha256(content)}", "size": len(content)}


@dataclass
class SavingEngine:
    """What docker-py's client is, as far as images are saved."""

    image_id: str
    layers: Sequence[bytes]
    archive: bytes
    keeps_blobs: bool = False
    breaks_after: int | None = None
    """Bytes of the archive, after which the connection is lost."""
    removed: bool = False
    """Whether the image goes away between the question for it and its saving."""
    saves: int = 0
    closed: int = 0
    base_url: str = "http+docker://localhost"
    api_version: str = "1.41"
    interrupts: bool = False
    """Whether Ctrl-C is pressed where the connection would be lost."""

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name != self.image_id:
            raise ImageNotFound("no such image")
        diff_ids = [f"sha256:{sha256(layer)}" for layer in self.layers]
        return {"Id": name, "RootFS": {"Layers": diff_ids}, "Size": sum(map(len, self.layers)), "Config": {}}

    def info(self) -> dict[str, Any]:
        driver = "io.containerd.snapshotter.v1" if self.keeps_blobs else "overlay2"
        return {"DriverStatus": [["driver-type", driver]]}

    def get(self, url: str, *, stream: bool, timeout: tuple[float, None]) -> Answer:
        assert url.endswith(f"/v{self.api_version}/images/{self.image_id}/get")
        assert stream
        assert timeout[1] is None, "an engine that works may be silent"
        self.saves += 1
        return Answer(self, 404 if self.removed else 200)


@dataclass
class Answer:
    """A response of requests, as far as it is read."""

    engine: SavingEngine
    status_code: int
    text: str = ""

    def json(self) -> dict[str, str]:
        return {"message": "no such image"}

    def iter_content(self, size: int) -> Iterator[bytes]:
        engine, piece = self.engine, min(size, 4096)
        for at in range(0, len(engine.archive), piece):
            if engine.breaks_after is not None and at >= engine.breaks_after:
                if engine.interrupts:
                    raise KeyboardInterrupt
                raise requests.exceptions.ChunkedEncodingError("connection broken")
            yield engine.archive[at : at + piece]

    def close(self) -> None:
        self.engine.closed += 1
