"""A base with a protected package and native libraries, a good image on it, and the plan that it keeps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import pytest
from scratch import Scratch
from verify_images import build, shared_library, tar_of, wheel

from lj_image.catalog.release import AptSource, ArchiveSource, FilesSource, RunConfig, RunSource
from lj_image.verify.report import VerifyReport
from lj_image.verify.runner import verify
from lj_image.verify.subject import Subject
from unit.verify.verify_subjects import base_component, component, locked, locked_archive, make_plan, pip_source

SECRET = b"correct-horse-battery"

BASE = """
FROM {base}
COPY *.whl /tmp/
RUN python3 -m pip install --no-index --no-deps --no-compile --no-cache-dir --break-system-packages /tmp/*.whl
COPY lib*.so.* /usr/lib/
RUN ldconfig
ENV BASE_BUILD=7 LD_LIBRARY_PATH=/usr/lib
"""

GOOD = """
FROM {base} AS installed
LABEL {label}
COPY *.whl /tmp/
RUN PYTHONDONTWRITEBYTECODE=1 python3 -m pip install --root /out --no-index --no-deps --no-compile --no-cache-dir \
    --break-system-packages /tmp/*.whl
COPY vendor.tar.gz /tmp/
RUN mkdir -p /out/opt/vendor && tar -xf /tmp/vendor.tar.gz -C /out/opt/vendor --strip-components=1 --no-same-owner

FROM {base}
COPY --from=installed /out/ /
COPY motd /etc/motd
COPY constraints.txt /etc/lj-image/constraints.txt
RUN echo 1.2.3 > /opt/ran
ENV PIP_CONSTRAINT=/etc/lj-image/constraints.txt MODE=fast LD_LIBRARY_PATH=/opt/vendor/lib:/usr/lib
WORKDIR /workspace
ENTRYPOINT ["/bin/sh", "-c"]
CMD ["true"]
LABEL org.opencontainers.image.version=25.02-open
"""

OWN_TESTS = """
import pytest

def test_package(host):
    assert host.package("bash").is_installed

def test_file(host):
    assert host.file("/etc/motd").content_string == "welcome\\n"
    assert host.check_output("cat %s", "/opt/ran") == "1.2.3"

def test_shell_is_killed_and_the_next_test_has_a_new_one(host):
    with pytest.raises(Exception, match="shell inside the container ended"):
        host.run("kill -9 $PPID")
    assert host.run("exit 3").rc == 3

@pytest.mark.gpu
def test_gpu(host):
    assert host.run("nvidia-smi").rc == 0
"""


@dataclass(frozen=True)
class Workbench:
    """What the tests verify, and with what."""

    api: docker.APIClient
    subject: Subject
    scratch: Scratch
    cache_dir: Path

    def verify(self, image_id: str | None = None, junit: Path | None = None) -> VerifyReport:
        subject = self.subject if image_id is None else replace(self.subject, image_id=image_id)
        return verify(subject, api=self.api, cache_dir=self.cache_dir, junit=junit)

    def spoiled(self, name: str, dockerfile: str, files: dict[str, bytes] | None = None) -> str:
        return build(self.api, self.scratch.name(name), f"FROM {self.subject.image_id}\n{dockerfile}", files)


@pytest.fixture(scope="session")
def workbench(
    engine: docker.APIClient, base_image: str, scratch: Scratch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """Build the base and the good image; the build's nameless stage is removed at the end."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to compile libraries that say a version")
    folder = tmp_path_factory.mktemp("verify")
    libraries = {"cudart": 12080, "cudnn": 90700, "nvrtc": 12, "nccl": 22501}
    native = {f"lib{name}.so.{_abi(name)}": shared_library(folder, name, number) for name, number in libraries.items()}
    guarded = dict([wheel("guarded", "1.0", guarded="LEVEL = 1\n", guarded_more="x = 2\n")])
    base = scratch.name("verify-base")
    build(engine, base, BASE.format(base=base_image), {**native, **guarded})

    archive = folder / "vendor.tar.gz"
    nccl = shared_library(folder, "nccl", 22304)
    members = {"v/bin/run": (0o755, b"#!/bin/sh\n"), "v/lib/libnccl.so.2": (0o755, nccl), "v/notice": (0o644, b"mine")}
    archive.write_bytes(tar_of(members, "w:gz"))
    tree = folder / "rootfs"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc" / "motd").write_text("welcome\n")
    tests = folder / "tests"
    tests.mkdir()
    (tests / "test_own.py").write_text(OWN_TESTS)

    components = (
        base_component("python", "3.11", "python"),
        base_component("debian", "12", "os-release"),
        base_component("cuda", "12.8.0", "cudart"),
        base_component("cudnn", "9.7.0.66", "cudnn"),
        base_component("nvrtc", "12.8", "nvrtc"),
        base_component("build", "7", "env:BASE_BUILD"),
        base_component("perf", "5.4.30", "none"),
        component("tool", "1.4.2", pip_source("tool", "1.4.2", imports="tool")),
        component("vendor", "2.23.4.11", ArchiveSource("a", "a", "/opt/vendor", 1, "lib", "nccl")),
        component("kit", "1.0", ArchiveSource("a", "a", "/opt/vendor", 1, None, "none")),
        component("motd", "1", FilesSource(tree, "/")),
        component("shell", "5.2", AptSource((("bash", "5.2*"),))),
        component("ran", "1.2.3", RunSource(("x",), "cat /opt/ran", "1.2.3")),
    )
    plan = make_plan(
        *components,
        distributions=(locked("fussy", "1.0", "shared"), locked("tool", "1.4.2", "tool")),
        archives=(locked_archive("vendor", "2.23.4.11"), locked_archive("kit", "1.0")),
        protected=("guarded", "absent"),
        base_packages={"guarded": "1.0"},
        complaints={"fussy": ("tool==9",)},
        config=RunConfig((("MODE", "fast"),), "/workspace", ("/bin/sh", "-c"), ("true",)),
        size_budget_bytes=2**30,
    )
    plan = replace(plan, env=(*((k, v) for k, v in plan.env if k != "LD_LIBRARY_PATH"), VENDOR_PATH))
    files = {
        **dict([wheel("tool", "1.4.2"), wheel("fussy", "1.0", requires=("tool==9",))]),
        "vendor.tar.gz": archive.read_bytes(),
        "motd": b"welcome\n",
        "constraints.txt": plan.layers[-1].text.encode(),  # type: ignore[union-attr]
    }
    label = " ".join(f"{name}={value}" for name, value in scratch.labels.items())  # by which the stage is swept, too
    image = build(engine, scratch.name("verify-good"), GOOD.format(base=base, label=label), files)
    subject = Subject(
        plan=plan,
        image_id=image,
        base_image_ref=base,
        labels={"org.opencontainers.image.version": "25.02-open"},
        needles=(SECRET,),
        tests=tests,
        archives={"vendor": archive, "kit": archive},
    )
    yield Workbench(engine, subject, scratch, folder / "cache")
    for stage in engine.images(filters={"label": label, "dangling": True}):
        engine.remove_image(stage["Id"], force=True)


VENDOR_PATH = ("LD_LIBRARY_PATH", "/opt/vendor/lib${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}")


def _abi(name: str) -> str:
    return {"cudart": "12", "cudnn": "9", "nvrtc": "12", "nccl": "2"}[name]
