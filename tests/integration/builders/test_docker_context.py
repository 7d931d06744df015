"""How the context travels: large files, and the same cache as the docker command's."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import docker
import pytest
from watching import Seen

from lj_image.builders.docker import buildkit, classic
from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext, ContextFile
from lj_image.errors import BuildError

pytestmark = pytest.mark.engine

MIB = 1024 * 1024


def peak_kib() -> int:
    """Return the peak memory of this process since the last `forget_peak`."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match
    return int(match[1])


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak resident set size


@pytest.mark.parametrize("builder", [buildkit, classic], ids=["buildkit", "classic"])
def test_a_large_file_does_not_pass_through_memory(
    api: docker.APIClient, tiny_base: str, tag: str, tmp_path: Path, builder: ModuleType
) -> None:
    store = tmp_path / "large.whl"
    with store.open("wb") as file:
        file.write(secrets.token_bytes(16))
        file.truncate(300 * MIB)
    dockerfile = f"FROM {tiny_base}\n# layer: large\nCOPY large.whl /\n"
    request = BuildRequest(BuildContext(dockerfile, (ContextFile("large.whl", store),)), tags=(tag,), network="none")
    seen = Seen()
    forget_peak()
    before = peak_kib()
    image = builder.build(api, request, seen)
    assert peak_kib() - before < 24 * 1024
    assert max(layer["Size"] for layer in api.history(image)) >= 300 * MIB


def test_an_unchanged_large_file_is_not_sent_again(
    api: docker.APIClient, tiny_base: str, tag: str, tmp_path: Path
) -> None:
    store = tmp_path / "file.whl"
    store.write_bytes(secrets.token_bytes(4 * MIB))
    sent = []
    for command in ("one", "two"):
        dockerfile = f"FROM {tiny_base}\nCOPY file.whl /{command}\n"
        seen = Seen()
        context = BuildContext(dockerfile, (ContextFile("file.whl", store),))
        buildkit.build(api, BuildRequest(context, tags=(tag,), network="none"), seen)
        sent.append(next(s.bytes or 0 for s in reversed(seen.steps) if "load build context" in s.name))
    assert sent[0] > 4 * MIB
    assert sent[1] < 4096


@pytest.mark.parametrize("builder", [buildkit, classic], ids=["buildkit", "classic"])
def test_a_file_that_is_gone_is_named(
    api: docker.APIClient, tiny_base: str, tag: str, tmp_path: Path, builder: ModuleType
) -> None:
    context = BuildContext(f"FROM {tiny_base}\nCOPY a /\n", (ContextFile("a", tmp_path / "gone"),))
    with pytest.raises(BuildError, match=str(tmp_path / "gone")):
        builder.build(api, BuildRequest(context, tags=(tag,), network="none"), Seen())


def buildkit_cli() -> str | None:
    """Return a docker command that can ask for BuildKit: an old one by itself, a new one with its buildx plugin."""
    for candidate in dict.fromkeys((shutil.which("docker") or "", "/usr/bin/docker")):
        if Path(candidate).is_file():
            environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
            asked = subprocess.run([candidate, "build", "--help"], env=environment, capture_output=True, check=False)
            if asked.returncode == 0 and b"--secret" in asked.stdout:
                return candidate
    return None


def test_the_docker_command_finds_our_layers_in_its_cache(
    api: docker.APIClient, tiny_base: str, tag: str, tmp_path: Path
) -> None:
    cli = buildkit_cli()
    if cli is None:
        pytest.skip("no docker command with BuildKit")
    dockerfile = f"FROM {tiny_base}\nCOPY . /x/\n# layer: made\nRUN echo {tag} >/y\n"
    files = (ContextFile("a.sh", b"#!", 0o755), ContextFile("d/é b", b"x"), ContextFile(".dockerignore", b"no*\n"))
    context = BuildContext(dockerfile, (*files, ContextFile("nope", b"")))
    image = buildkit.build(api, BuildRequest(context, tags=(tag,), network="none"), Seen())
    context.write_to(tmp_path / "context")
    iid = tmp_path / "iid"
    subprocess.run(
        [cli, "build", "--network=none", "--iidfile", str(iid), str(tmp_path / "context")],
        env={**os.environ, "DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"},
        check=True,
        capture_output=True,
    )
    assert iid.read_text() == image
