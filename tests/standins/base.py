"""An image with the shape of NGC PyTorch 25.01: its versions, its variables, its constraints and its flaws."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import docker
import yaml

from standins.libraries import CUDART, CUDNN, NCCL_OF_BASE, compiled
from standins.wheels import distribution

TORCH: Final = "2.6.0a0+ecf3bae40a.nv25.1"
SITE: Final = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's pip installs to; in the image itself the Python is 3.12."""
CONSTRAINTS: Final = "/etc/pip/constraint.txt"
FACTS: Final = Path(__file__).parents[2] / "images/training-nv-pytorch/bases/ngc-25.01.yaml"
ENV: Final = {
    "CUDA_VERSION": "12.8.0.038",
    "CUDNN_VERSION": "9.7.0.66",
    "NCCL_VERSION": "2.25.1",
    "CUBLAS_VERSION": "12.8.3.14",
    "CUDA_DRIVER_VERSION": "570.86.10",
    "NVIDIA_PYTORCH_VERSION": "25.01",
    "NVIDIA_BUILD_ID": "134983853",
    "NVIDIA_PRODUCT_NAME": "PyTorch",
    "NVIDIA_REQUIRE_CUDA": "cuda>=9.0",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video",
    "PIP_CONSTRAINT": CONSTRAINTS,
    "LD_LIBRARY_PATH": f"/{SITE}/torch/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
}


def packages() -> dict[str, str]:
    """Return what is publicly known to be in 25.01, without the tools that Debian's rootfs has of its own."""
    known: dict[str, str] = yaml.safe_load(FACTS.read_text())["packages"]
    return {name: version for name, version in known.items() if name not in ("pip", "setuptools")}


def make(engine: docker.APIClient, below: str, reference: str) -> None:
    """Build the image on a Debian root file system, and name it."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for path, content in sorted({"Dockerfile": _dockerfile(below).encode(), **dict(_files())}.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    context.seek(0)
    lines = engine.build(fileobj=context, custom_context=True, tag=reference, rm=True, network_mode="none", decode=True)
    failures = [line["error"] for line in lines if "error" in line]
    assert not failures, failures


def _dockerfile(below: str) -> str:
    env = " ".join(f"{name}={json.dumps(value)}" for name, value in ENV.items())
    return f"FROM {below}\nCOPY root/ /\nRUN ldconfig && rm -rf /var/cache/ldconfig\nENV {env}\nWORKDIR /workspace\n"


def _files() -> Iterator[tuple[str, bytes]]:
    for name, version in packages().items():
        yield from _installed(name, version, _torch(version) if name == "torch" else {})
    # What NGC's own `pip check` complains about; the release must live with it.
    yield from _installed("nvidia-dali-cuda120", "1.45.0", {}, ("six",))
    constraints = "".join(f"{name}=={version}\n" for name, version in packages().items())
    yield f"root{CONSTRAINTS}", constraints.encode()
    yield "root/etc/ld.so.conf.d/cuda.conf", b"/usr/local/cuda/lib64\n"
    yield f"root/usr/local/cuda/lib64/{CUDART.soname}", compiled(CUDART)
    yield f"root/usr/lib/x86_64-linux-gnu/{CUDNN.soname}", compiled(CUDNN)
    yield f"root/usr/lib/x86_64-linux-gnu/{NCCL_OF_BASE.soname}", compiled(NCCL_OF_BASE)


def _torch(version: str) -> Mapping[str, bytes]:
    return {
        "torch/__init__.py": b"from torch.version import __version__\n",
        "torch/version.py": f"__version__ = {version!r}\n".encode(),
        "torch/lib/libtorch.so": b"\x7fELF, if this were one\n",
    }


def _installed(
    name: str, version: str, files: Mapping[str, bytes], requires: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    for path, content in distribution(name, version, files, requires).items():
        yield f"root/{SITE}/{path}", content
