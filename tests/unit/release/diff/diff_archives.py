"""Archives of images, written byte by byte, in the forms that engines and tools leave on disk."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Files = Mapping[str, bytes | None]
"""Path -> content; None for a folder; `→ target` for a link."""

SITE = "usr/lib/python3.11/site-packages"


def tar_of(files: Files) -> bytes:
    """Return a tar of files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.DIRTYPE
            elif content.startswith("→ ".encode()):
                member.type, member.linkname = tarfile.SYMTYPE, content.decode()[2:]
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return packed.getvalue()


def distribution(name: str, version: str, licence: str = "MIT") -> dict[str, bytes]:
    """Return the files that pip leaves of a distribution, as far as anything here reads them."""
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: {licence}\n"
    return {
        f"{SITE}/{name}/__init__.py": f"__version__ = {version!r}\n".encode(),
        f"{SITE}/{name}-{version}.dist-info/METADATA": metadata.encode(),
    }


def digest(content: bytes) -> str:
    """Return `sha256:…`."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def config_of(layers: Sequence[bytes], labels: Mapping[str, str] | None = None, architecture: str = "amd64") -> bytes:
    """Return an image's configuration."""
    return json.dumps(
        {
            "os": "linux",
            "architecture": architecture,
            "config": {"Labels": dict(labels or {})},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
            "history": [{"created_by": "ENV A=b", "empty_layer": True}]
            + [{"created_by": f"/bin/sh -c step {number}"} for number in range(1, len(layers) + 1)],
        }
    ).encode()


def docker_save(path: Path, layers: Sequence[bytes], labels: Mapping[str, str] | None = None) -> Path:
    """Write what engines up to 24 save."""
    config = config_of(layers, labels)
    files: dict[str, bytes | None] = {f"{digest(config)[7:]}.json": config}
    names = [f"{number:064x}/layer.tar" for number in range(len(layers))]
    files |= dict(zip(names, layers, strict=True))
    manifest = [{"Config": f"{digest(config)[7:]}.json", "RepoTags": ["x:1"], "Layers": names}]
    path.write_bytes(tar_of(files | {"manifest.json": json.dumps(manifest).encode()}))
    return path


def oci_files(
    images: Mapping[str, tuple[Sequence[bytes], Mapping[str, str]]],
    compress: Callable[[bytes], bytes] = lambda layer: gzip.compress(layer, mtime=0),
) -> dict[str, bytes]:
    """Return the files of an OCI layout: architecture -> layers and labels."""
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def blob(content: bytes) -> dict[str, object]:
        files[f"blobs/sha256/{digest(content)[7:]}"] = content
        return {"digest": digest(content), "size": len(content)}

    manifests = []
    for architecture, (layers, labels) in images.items():
        config = blob(config_of(layers, labels, architecture))
        described = [
            blob(compress(layer)) | {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"} for layer in layers
        ]
        manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": described}).encode())
        manifests.append(manifest | {"platform": {"os": "linux", "architecture": architecture}})
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    return files


def oci_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write an OCI layout as a folder."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def oci_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write an OCI layout as a tar."""
    path.write_bytes(tar_of(files))
    return path
