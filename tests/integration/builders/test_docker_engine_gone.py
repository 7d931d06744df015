"""What is told when the engine dies in the middle of a build, on an engine of our own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import docker
import pytest
from docker.errors import DockerException
from watching import Seen, import_base

from lj_image.builders.docker import buildkit, classic
from lj_image.builders.docker import engine as engines
from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext
from lj_image.errors import EngineError

pytestmark = pytest.mark.engine


@dataclass
class OwnEngine:
    """A dockerd in namespaces of its own; all that it has started ends with it."""

    process: subprocess.Popen[bytes]
    host: str

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)


@pytest.fixture
def own_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    dockerd = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not dockerd or os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("this engine has no dockerd that this user could start a second time")
    host = f"unix://{tmp_path}/docker.sock"
    command = [
        *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", dockerd, "--host", host),
        *("--data-root", f"{tmp_path}/data", "--exec-root", f"{tmp_path}/exec", "--pidfile", f"{tmp_path}/pid"),
        *("--bridge", "none", "--iptables=false", "--storage-driver", "vfs", "--config-file", f"{tmp_path}/none.json"),
    ]
    (tmp_path / "none.json").write_text("{}")
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    engine = OwnEngine(process, host)
    monkeypatch.setenv("DOCKER_HOST", host)
    try:
        _wait_for(host, tmp_path / "log")
        yield engine
    finally:
        if process.poll() is None:
            engine.kill()
        shutil.rmtree(tmp_path / "data", ignore_errors=True)


def _wait_for(host: str, log: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            docker.APIClient(host, version="auto").close()
            return
        except DockerException:
            time.sleep(0.2)
    pytest.skip(f"this engine cannot run a second time here: {log.read_text()[-400:]}")


@pytest.mark.parametrize("builder", [buildkit, classic], ids=["buildkit", "classic"])
def test_an_engine_that_dies_in_the_middle_is_told_as_such(
    own_engine: OwnEngine, tiny_rootfs: Path, builder: ModuleType
) -> None:
    threads, seen = threading.active_count(), Seen()
    with engines.connect() as api:
        base = import_base(api, tiny_rootfs, "tiny")
        dockerfile = f"FROM {base}\nRUN echo asleep && sleep 60.{secrets.randbelow(10**6)}\n"
        killer = threading.Thread(target=lambda: (seen.wait_for("asleep"), own_engine.kill()))
        killer.start()
        with pytest.raises(EngineError) as caught:
            builder.build(api, BuildRequest(BuildContext(dockerfile), network="none"), seen)
        killer.join()
    assert caught.value.message == f"the engine at {own_engine.host} went away during the build"
    assert caught.value.hint
    assert threading.active_count() == threads
    with pytest.raises(EngineError, match="no engine answers"):
        engines.connect()
