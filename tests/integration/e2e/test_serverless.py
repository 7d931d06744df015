"""Release 25.02 in the vendor's variant, from the committed manifest to three references on one digest.

The vendor's registry, index and archive are stand-ins of the same shape, reached through the config alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from docker.errors import APIError
from e2e_outside import Outside
from scratch import Scratch

from standins import base, vendor
from standins.commands import Project
from standins.registries import Registry
from standins.wheels import module, wheel

pytestmark = [pytest.mark.engine, pytest.mark.registry]

IMAGES = Path(__file__).parents[3] / "images"
IMAGE, TAG = "training-nv-pytorch", "25.02-serverless"
PUBLIC_HOST = "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com"
VPC_HOST = "acs-registry-vpc.{region}.cr.aliyuncs.com"
REPOSITORY = f"egslingjun/{IMAGE}"
PLACES = {
    f"{PUBLIC_HOST}/{REPOSITORY}:{TAG}": "public",
    f"{VPC_HOST.format(region='cn-beijing')}/{REPOSITORY}:{TAG}": "cn-beijing",
    f"{VPC_HOST.format(region='cn-shanghai')}/{REPOSITORY}:{TAG}": "cn-shanghai",
}
"""Reference -> where the config sends it in the local registry."""


@dataclass(frozen=True)
class Released:
    """A release that went the whole way, and what its steps have said."""

    project: Project
    builder: str
    said: dict[str, str]
    """By command."""
    image_id: str

    @property
    def lock(self) -> str:
        return (self.project.folder / f"images/{IMAGE}/locks/{TAG}.txt").read_text()

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.project.cache / f"records/{IMAGE}/{TAG}.json").read_text())
        return found


@pytest.fixture(scope="module", params=["auto", "docker-classic"])
def released(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    engine: docker.APIClient,
    ngc: str,
    own_registry: Registry,
    outside: Outside,
) -> Iterator[Released]:
    """Go the whole way with each builder."""
    builder = str(request.param)
    project = Project.create(tmp_path_factory.mktemp("project"), IMAGES / IMAGE, IMAGES / "base-os")
    project.env["VENDOR_PASSWORD"] = vendor.PASSWORD
    place = f"{own_registry.address}/{builder}"
    project.configure(
        {
            "mirrors": {"nvcr.io": own_registry.address},
            "indexes": {
                "vendor": {"url": outside.vendor.simple, "username": vendor.USER, "password_env": "VENDOR_PASSWORD"},
                "pypi": {"url": outside.public.simple},
            },
            "archives": {"accl-n": {"url": f"{outside.archives.url}/archives"}},
            "endpoints": {"rewrite": {PUBLIC_HOST: f"{place}/public", VPC_HOST: f"{place}/{{region}}"}},
        }
    )
    if builder == "docker-classic":  # nobody has asked this base before
        (project.folder / f"images/{IMAGE}/bases/ngc-25.01.yaml").unlink()
    said = {
        "base": project.run("base", "25.02", "--variant", "serverless"),
        "lock": project.run("lock", "25.02", "--variant", "serverless"),
        "check": project.run("lock", "25.02", "--variant", "serverless", "--check"),
        "plan": project.run("plan", "25.02"),
        "render": project.run("render", "25.02", *(["--classic"] if builder == "docker-classic" else [])),
    }
    done = project.attempt("build", "25.02", "--builder", builder)
    assert done.returncode == 0, done.stderr
    said |= {"build": done.stdout, "build's progress": done.stderr}
    said["verify"] = project.run("verify", "25.02", "--all")
    said["push"] = project.run("push", "--public", "--region", "cn-beijing", "--region", "cn-shanghai")
    said["refs"] = project.run("refs", "25.02")
    found: dict[str, Any] = engine.inspect_image(f"{IMAGE}:{TAG}")  # type: ignore[no-untyped-call]
    yield Released(project, builder, said, found["Id"])
    for name in (f"{IMAGE}:{TAG}", *(f"{place}/{folder}/{REPOSITORY}:{TAG}" for folder in PLACES.values())):
        with suppress(APIError):
            engine.remove_image(name, force=True)


def shell(
    engine: docker.APIClient, scratch: Scratch, image: str, script: str, files: bytes | None = None
) -> tuple[int, str]:
    """Run a script in a container without a network; `files` is a tar for its /tmp."""
    host = engine.create_host_config(network_mode="none")
    command = ["sh", "-ec", script]
    container = engine.create_container(image, command, entrypoint=[], labels=scratch.labels, host_config=host)["Id"]
    try:
        if files is not None:
            engine.put_archive(container, "/tmp", files)
        engine.start(container)
        status = int(engine.wait(container)["StatusCode"])
        return status, engine.logs(container).decode()
    finally:
        engine.remove_container(container, force=True, v=True)


def test_the_base_was_asked_and_its_answer_kept(released: Released, own_registry: Registry) -> None:
    facts = yaml.safe_load((released.project.folder / f"images/{IMAGE}/bases/ngc-25.01.yaml").read_text())
    assert facts["base"] == "nvcr.io/nvidia/pytorch:25.01-py3"
    assert facts["digest"] == own_registry.digest("nvidia/pytorch", "25.01-py3")
    assert facts["python"].startswith("3.11.")
    assert facts["site_packages"] == f"/{base.SITE}"
    assert base.packages().items() <= {name.lower(): version for name, version in facts["packages"].items()}.items()
    assert facts["complaints"] == {"nvidia-dali-cuda120": ["six"]}


def test_the_lock_takes_the_vendors_builds_and_never_torch(released: Released) -> None:
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", released.lock, re.MULTILINE))
    assert locked == {
        "msgpack": "1.1.0",
        "pyyaml": "6.0.2",
        "ray": "2.42.1",
        "tokenizers": "0.21.0",
        "transformers": "4.48.3+ali",
        "vllm": "0.7.2",
    }
    assert re.findall(r"# component (\S+), index vendor$", released.lock, re.MULTILINE) == ["transformers", "vllm"]
    assert "# archive accl-n 2.23.4.11, location accl-n" in released.lock
    assert "127.0.0.1" not in released.lock
    assert "fresh" in released.said["check"]


def test_the_variant_is_chosen_and_its_reason_told(released: Released) -> None:
    assert f"{IMAGE} 25.02, variant serverless (" in released.said["build's progress"]
    assert released.said["build"].startswith(f"{IMAGE}:{TAG}  {released.image_id}")


def test_plan_and_dockerfile_say_what_is_built(released: Released, own_registry: Registry) -> None:
    assert "ACCL-N" in released.said["plan"]
    assert f"FROM {own_registry.address}/nvidia/pytorch:25.01-py3@sha256:" in released.said["render"]
    assert ("--mount=type=bind" in released.said["render"]) == (released.builder == "auto")


def test_every_promise_is_proven(released: Released) -> None:
    verified = released.record["verified"]
    assert verified["passed"] is True
    assert verified["image_id"] == released.image_id
    assert verified["found"] == {
        "accl-n": "2.23.4",
        "cuda": "12.8",
        "cudnn": "9.7.0",
        "ray": "2.42.1",
        "transformers": "4.48.3+ali",
        "vllm": "0.7.2",
    }


def test_torch_is_the_bases_own_byte_for_byte(
    released: Released, engine: docker.APIClient, scratch: Scratch, ngc: str
) -> None:
    script = f"cd /{base.SITE} && find torch torch-*.dist-info -type f | sort | xargs sha256sum"
    status, ours = shell(engine, scratch, released.image_id, script)
    assert status == 0
    assert ours.count("\n") == 6
    assert (status, ours) == shell(engine, scratch, ngc, script)
    assert shell(engine, scratch, released.image_id, "python3 -c 'import torch; print(torch.__version__)'") == (
        0,
        f"{base.TORCH}\n",
    )


def test_a_later_pip_cannot_replace_torch(released: Released, engine: docker.APIClient, scratch: Scratch) -> None:
    file, content = wheel("torch", "2.6.0", module("torch", "2.6.0"))
    spool = io.BytesIO()
    with tarfile.open(fileobj=spool, mode="w") as tar:
        member = tarfile.TarInfo(file)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    script = "pip install --no-index --find-links /tmp torch==2.6.0"
    status, said = shell(engine, scratch, released.image_id, script, spool.getvalue())
    assert status != 0
    assert f"torch=={base.TORCH}" in said
    status, said = shell(engine, scratch, released.image_id, f"PIP_CONSTRAINT= {script}", spool.getvalue())
    assert status == 0, said  # so it was the constraint that refused


def test_programs_load_accl_n_although_the_base_has_an_nccl_of_its_own(
    released: Released, engine: docker.APIClient, scratch: Scratch, ngc: str
) -> None:
    script = (
        'python3 -c "import ctypes; v = ctypes.c_int(); '
        "ctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(v)); print(v.value)\""
    )
    assert shell(engine, scratch, ngc, script) == (0, "22501\n")
    assert shell(engine, scratch, released.image_id, script) == (0, "22304\n")


def test_three_references_hold_one_digest(released: Released, own_registry: Registry) -> None:
    digests = {
        reference: own_registry.digest(f"{released.builder}/{place}/{REPOSITORY}", TAG)
        for reference, place in PLACES.items()
    }
    assert len(set(digests.values())) == 1
    assert None not in digests.values()
    last_line = released.said["push"].splitlines()[-1]
    assert last_line.split() == [f"{reference}@{digest}" for reference, digest in digests.items()]
    recorded = {item["reference"]: (item["digest"], item["verified"]) for item in released.record["pushed"]}
    assert recorded == {reference: (digest, True) for reference, digest in digests.items()}
    repository = f"{released.builder}/public/{REPOSITORY}"
    manifest = own_registry.manifest(repository, str(digests[next(iter(PLACES))]))
    assert manifest["config"]["digest"] == released.image_id or manifest["mediaType"].endswith("index.v1+json")
    for blob in (manifest["config"], *manifest["layers"]):
        content = own_registry.get(f"{repository}/blobs/{blob['digest']}").content
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == blob["digest"]


def test_refs_are_the_public_one_and_every_region(released: Released) -> None:
    lines = released.said["refs"].splitlines()
    assert lines[0] == next(iter(PLACES))
    assert set(PLACES) <= set(lines)
    assert all(line.endswith(f"/{REPOSITORY}:{TAG}") for line in lines)


def test_the_password_is_nowhere(released: Released, engine: docker.APIClient) -> None:
    secret = vendor.PASSWORD
    assert secret not in "\n".join(released.project.said)
    needles = (secret.encode(), base64.b64encode(f"{vendor.USER}:{secret}".encode()))
    kept = [path for path in released.project.folder.rglob("*") if path.is_file()]
    assert [path for path in kept if any(needle in path.read_bytes() for needle in needles)] == []
    assert secret not in json.dumps(engine.inspect_image(released.image_id))  # type: ignore[no-untyped-call]
    assert secret not in json.dumps(engine.history(released.image_id))  # type: ignore[no-untyped-call]
    saved = io.BytesIO(b"".join(engine.get_image(released.image_id)))
    assert list(files_holding(saved, secret.encode())) == []


def files_holding(saved: io.BytesIO, needle: bytes) -> Iterator[str]:
    """Yield the files of a saved image, and of the layers in it, that hold some bytes."""
    with tarfile.open(fileobj=saved) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is None:
                continue
            whole = content.read()
            if needle in whole:
                yield member.name
            with suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(whole)) as layer:
                for item in layer:
                    inner = layer.extractfile(item) if item.isfile() else None
                    if inner is not None and needle in inner.read():
                        yield f"{member.name}:{item.name}"


def test_a_second_build_is_up_to_date(released: Released) -> None:
    again = released.project.run("build", "25.02", "--builder", released.builder)
    assert again.startswith(f"{IMAGE}:{TAG}  {released.image_id}")
    assert again.rstrip().endswith("up to date")
