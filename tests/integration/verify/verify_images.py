"""The images that verify is tried on: a base, a good image on it, and what spoils it."""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import docker

LIBRARIES = {
    "cudart": ("libcudart.so.12", "int cudaRuntimeGetVersion(int *v) { *v = %d; return 0; }"),
    "cudnn": ("libcudnn.so.9", "unsigned long cudnnGetVersion(void) { return %d; }"),
    "nccl": ("libnccl.so.2", "int ncclGetVersion(int *v) { *v = %d; return 0; }"),
    "nvrtc": ("libnvrtc.so.12", "int nvrtcVersion(int *a, int *b) { *a = %d; *b = 8; return 0; }"),
}


def shared_library(folder: Path, name: str, number: int) -> bytes:
    """Compile a library that answers as the real one does; it needs no C library."""
    file, source = LIBRARIES[name]
    code, output = folder / f"{name}.c", folder / file
    code.write_text(source % number)
    flags = ["-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{file}"]
    subprocess.run(["gcc", *flags, "-o", str(output), str(code)], check=True)
    return output.read_bytes()


def wheel(name: str, version: str, *, requires: tuple[str, ...] = (), **files: str) -> tuple[str, bytes]:
    """Return file name and content of a wheel; `files` are modules by name."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {item}\n" for item in requires)
    members = {f"{module}.py": text for module, text in (files or {name: f"__version__ = {version!r}\n"}).items()}
    members[f"{info}/METADATA"] = metadata
    members[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in members.items()]
    members[f"{info}/RECORD"] = "\n".join((*rows, f"{info}/RECORD,,", ""))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in members.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", packed.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def tar_of(files: Mapping[str, tuple[int, bytes]], mode: str = "w") -> bytes:
    """Return a tar of files: path -> mode and content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:  # type: ignore[call-overload]
        for path, (bits, content) in files.items():
            member = tarfile.TarInfo(path)
            member.mode, member.size = bits, len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def build(api: docker.APIClient, tag: str, dockerfile: str, files: Mapping[str, bytes] | None = None) -> str:
    """Build an image by the classic builder and return its id."""
    context = {"Dockerfile": (0o644, dockerfile.encode())}
    context |= {path: (0o644, content) for path, content in (files or {}).items()}
    said = []
    for event in api.build(
        fileobj=io.BytesIO(tar_of(context)), custom_context=True, tag=tag, rm=True, forcerm=True, decode=True
    ):
        said.append(event.get("stream", ""))
        if "error" in event:
            raise AssertionError(event["error"] + "".join(said))
    return str(api.inspect_image(tag)["Id"])
