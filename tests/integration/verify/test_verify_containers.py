"""The channel and its container, on a real engine: through its socket, through TCP and through TLS."""

from __future__ import annotations

import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import docker
import docker.tls
import pytest
from scratch import Scratch
from verify_images import build

from lj_image.errors import VerificationError
from lj_image.verify.channel import ChannelError
from lj_image.verify.container import LABEL, running


class Relay:
    """Passes connections on to the engine's unix socket, as a remote engine would be reached."""

    def __init__(self, target: str, wrap: Callable[[socket.socket], socket.socket]) -> None:
        self._target, self._wrap = target, wrap
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), self._wrap(client) as near, socket.socket(socket.AF_UNIX) as far:
            far.connect(self._target)
            while True:
                pending = isinstance(near, ssl.SSLSocket) and near.pending()
                ready = [near] if pending else select.select([near, far], [], [])[0]
                for source in ready:
                    if not (piece := source.recv(65536)):
                        return
                    (far if source is near else near).sendall(piece)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def unix_socket() -> str:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("this engine is not reached by a unix socket")
    return host.removeprefix("unix://")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*make, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder


@pytest.fixture(params=["unix", "tcp", "tls"])
def api(
    request: pytest.FixtureRequest, unix_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[docker.APIClient]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests lets them win over the client's own certificate
        monkeypatch.delenv(name, raising=False)
    if request.param == "unix":
        yield docker.APIClient(f"unix://{unix_socket}", version="auto")
        return
    if request.param == "tcp":
        relay = Relay(unix_socket, lambda client: client)
        client = docker.APIClient(f"tcp://127.0.0.1:{relay.port}", version="auto")
    else:
        folder: Path = request.getfixturevalue("certificate")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        relay = Relay(unix_socket, lambda client: context.wrap_socket(client, server_side=True))
        trust = docker.tls.TLSConfig(ca_cert=str(folder / "cert.pem"), verify=True)
        client = docker.APIClient(f"https://localhost:{relay.port}", tls=trust, version="auto")
    with client:
        yield client
    relay.close()


def containers_of(api: docker.APIClient, image: str) -> list[str]:
    return [item["Id"] for item in api.containers(all=True, filters={"label": LABEL, "ancestor": image})]


def test_commands_run_however_the_engine_is_reached(api: docker.APIClient, base_image: str) -> None:
    with running(api, base_image) as container:
        assert container.run("printf 'a\\000b'; echo e >&2; exit 7").exit_code == 7
        assert container.run("printf 'a\\000b'").stdout == b"a\0b"
        assert len(container.run("head -c 20000000 /dev/urandom").stdout) == 20_000_000
        with pytest.raises(ChannelError, match="no end after"):
            container.run("sleep 60", timeout_s=0.5)
        with pytest.raises(ChannelError, match="shell inside the container ended"):
            container.run("kill -9 $PPID", timeout_s=10)
        assert container.run("echo new shell").text == "new shell\n"


def test_a_hundred_commands_need_one_process_of_the_engine(
    engine: docker.APIClient, base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    exec_create = engine.exec_create
    monkeypatch.setattr(engine, "exec_create", lambda *args, **more: started.append(args) or exec_create(*args, **more))
    with running(engine, base_image) as container:
        for number in range(100):
            assert container.run(f"exit {number}").exit_code == number
    assert len(started) == 1


def test_the_container_has_no_network_and_is_gone_afterwards(engine: docker.APIClient, base_image: str) -> None:
    with running(engine, base_image) as container:
        devices = container.run("cat /proc/net/dev").text
        assert [line.split(":")[0].strip() for line in devices.splitlines()[2:] if "eth" in line] == []
        assert engine.inspect_container(container.name)["HostConfig"]["NetworkMode"] == "none"
    with pytest.raises(docker.errors.NotFound):
        engine.inspect_container(container.name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_container_is_removed_also_after_ctrl_c(
    engine: docker.APIClient, base_image: str, error: type[BaseException]
) -> None:
    with pytest.raises(error), running(engine, base_image) as container:
        raise error
    with pytest.raises(docker.errors.NotFound):
        engine.inspect_container(container.name)


def test_an_engine_without_gpu_gives_none(engine: docker.APIClient, base_image: str) -> None:
    if "nvidia" in engine.info()["Runtimes"]:
        pytest.skip("this engine has a GPU")
    with running(engine, base_image, gpu=True) as container:
        assert container.gpu is False


def test_a_command_that_ends_the_container_is_told_by_the_next(engine: docker.APIClient, base_image: str) -> None:
    with running(engine, base_image) as container:
        with pytest.raises(ChannelError, match="shell inside the container ended"):
            container.run("kill -TERM 1; sleep 20", timeout_s=15)
        deadline = time.monotonic() + 30  # a loaded engine takes its time to notice
        while engine.inspect_container(container.name)["State"]["Running"] and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(ChannelError, match="the container has stopped"):
            container.run("true")


ELF = r"RUN printf '\177ELF\002\001\001xxxxxxxxx'"
SHELLS = {
    "no shell": "RUN rm /bin/sh",
    "a shell that ends": "RUN cp /bin/false /bin/new && mv /bin/new /bin/sh",
    "a shell for another processor": ELF + " > /bin/new && chmod 755 /bin/new && mv /bin/new /bin/sh",
}


@pytest.mark.parametrize("spoiled", SHELLS)
def test_an_image_that_cannot_run_a_shell_is_an_error_with_a_way_out(
    engine: docker.APIClient, base_image: str, scratch: Scratch, spoiled: str
) -> None:
    image = build(
        engine, scratch.name(f"verify-{spoiled.replace(' ', '-')}"), f"FROM {base_image}\n{SHELLS[spoiled]}\n"
    )
    with pytest.raises(VerificationError, match=r"does not start|ends at once") as failure, running(engine, image):
        pass
    assert "docker run --rm --entrypoint sh" in (failure.value.hint or "")
    assert containers_of(engine, image) == []
