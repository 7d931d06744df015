"""Ctrl-C at every stage, two builds at once, damaged files, secrets that leak, and an engine that may not be used.

Each through the real command line on the small family; the process gets what a terminal would send.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from scratch import Scratch

from standins import small
from standins.commands import SMALL_BASE, Project
from standins.registries import Registry, running
from unit.lock.loopback import Handler, Loopback, hang_after

pytestmark = [pytest.mark.engine, pytest.mark.registry]

TESTS = Path(__file__).parents[2]
FAMILIES = (TESTS / "families/every-kind", SMALL_BASE)
PLAIN = ("25.02", "--variant", "plain")
PLAIN_IMAGE = "every-kind:25.02-plain"


@pytest.fixture
def project(
    tmp_path: Path,
    base_image: str,
    base_rootfs: Path,
    packages: Loopback,
    kits: Loopback,
    remove_images: Callable[[str], None],
) -> Project:
    """Return a project in which nothing was done yet."""
    made = Project.create(tmp_path, *FAMILIES)
    made.keep(base_rootfs)
    small.configure(made, packages, kits, build={"network": "none"})
    remove_images("every-kind")
    return made


@pytest.fixture
def locked(project: Project) -> Project:
    """Return a project whose plain variant is locked."""
    project.run("lock", *PLAIN)
    return project


def interrupt_when(project: Project, ready: Callable[[str], bool], *arguments: str) -> tuple[int, str]:
    """Start a command, send Ctrl-C to its process group once it has said enough; return exit code and messages."""
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("lj-image")), *arguments],
        cwd=project.folder,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    said: list[str] = []
    deadline = time.monotonic() + 90
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    sent = False
    while process.poll() is None:
        assert time.monotonic() < deadline, "".join(said)
        chunk = process.stdout.read()
        if chunk:
            said.append(chunk.decode(errors="replace"))
        if not sent and ready("".join(said)):
            os.killpg(process.pid, signal.SIGINT)
            sent, deadline = True, time.monotonic() + 30
        time.sleep(0.05)
    said.append((process.stdout.read() or b"").decode(errors="replace"))
    text = "".join(said)
    assert sent, f"ended before it could be interrupted:\n{text}"
    assert "Traceback" not in text, text
    return process.returncode, text


def containers(engine: docker.APIClient) -> set[str]:
    """Return the containers that verification starts."""
    return {item["Id"] for item in engine.containers(all=True, filters={"label": "io.lj-image.verify"})}


def unfinished(project: Project) -> list[str]:
    """Return files that only a run in progress has."""
    names = (str(path.relative_to(project.folder)) for path in project.folder.rglob("*.partial"))
    return [name for name in names if not name.startswith("cache/artifacts/")]  # beginnings of files are resumed


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Return what a hanging answer waits for; set at the end, so that no thread of the server is left."""
    event = threading.Event()
    yield event
    event.set()


def test_ctrl_c_while_locking_leaves_no_lock(project: Project, packages: Loopback, held: threading.Event) -> None:
    asked = threading.Event()

    def silent(handler: Handler, body: bytes) -> None:
        asked.set()
        held.wait(30)
        handler.close_connection = True

    packages.faults[""] = [silent] * 4  # the page of any project
    code, said = interrupt_when(project, lambda _: asked.is_set(), "lock", *PLAIN)
    packages.faults.clear()
    assert code == 130, said
    assert not (project.folder / "images/every-kind/locks").exists()
    assert unfinished(project) == []
    assert not list(Path(tempfile.gettempdir()).glob("lj-image-lock-*"))
    project.run("lock", *PLAIN)


def test_ctrl_c_while_fetching_keeps_what_is_whole(locked: Project, packages: Loopback, held: threading.Event) -> None:
    file = "helper-2.0-py3-none-any.whl"
    asked = len(packages.asked(file))
    packages.faults[file] = [hang_after(100, held)]
    code, said = interrupt_when(locked, lambda _: len(packages.asked(file)) > asked, "fetch", *PLAIN)
    packages.faults.clear()
    assert code == 130, said
    assert "3 files" not in said
    assert re.search(r"[1-3] files fetched", locked.run("fetch", *PLAIN))
    assert "0 files fetched, 3 were there" in locked.run("fetch", *PLAIN)


@pytest.mark.parametrize("builder", ["docker", "docker-classic"])
def test_ctrl_c_while_building_leaves_neither_image_nor_record(
    project: Project, engine: docker.APIClient, builder: str
) -> None:
    slow = ("25.02", "--variant", "slow")
    project.run("lock", *slow)
    before = {item["Id"] for item in engine.containers(all=True)}
    code, said = interrupt_when(project, lambda text: "| asleep now" in text, "build", *slow, "--builder", builder)
    assert code == 130, said
    assert engine.images("every-kind:25.02-slow") == []
    assert not list((project.cache / "records").rglob("*.json"))
    assert unfinished(project) == []
    deadline = time.monotonic() + 20  # the engine takes its step's container away by itself
    while ours := [c for c in engine.containers(all=True) if c["Id"] not in before and "sleep 60" in c["Command"]]:
        assert time.monotonic() < deadline, ours
        time.sleep(0.2)
    release = project.folder / "images/every-kind/image.yaml"
    release.write_text(release.read_text().replace("sleep 60", "sleep 0"))
    assert "every-kind:25.02-slow" in project.run("build", *slow, "--builder", builder)


def test_ctrl_c_while_verifying_leaves_no_container_and_no_proof(locked: Project, engine: docker.APIClient) -> None:
    locked.run("build", *PLAIN)
    before = containers(engine)
    code, said = interrupt_when(locked, lambda text: "asking what is inside" in text, "verify", *PLAIN)
    assert code == 130, said
    assert containers(engine) <= before
    record = json.loads((locked.cache / "records/every-kind/25.02-plain.json").read_text())
    assert record["verified"] is None
    assert "not verified" in locked.refuse(1, "push", *PLAIN, "--public")
    locked.run("verify", *PLAIN)


def test_ctrl_c_while_pushing_leaves_no_tag_and_a_rerun_does_the_rest(
    locked: Project, packages: Loopback, kits: Loopback, tmp_path_factory: pytest.TempPathFactory
) -> None:
    locked.run("build", *PLAIN)
    with silent_server() as (address, connected), running(tmp_path_factory.mktemp("registry")) as registry:
        rewrite = {"registry.example": f"{registry.address}/a", "registry-vpc.{region}.example": f"{address}/b"}
        small.configure(locked, packages, kits, build={"network": "none"}, endpoints={"rewrite": rewrite})
        push = ("push", *PLAIN, "--public", "--region", "north", "--no-verify")
        code, said = interrupt_when(locked, lambda _: connected.is_set(), *push)
        assert code == 130, said
        assert unfinished(locked) == []
        rewrite["registry-vpc.{region}.example"] = f"{registry.address}/b"
        small.configure(locked, packages, kits, build={"network": "none"}, endpoints={"rewrite": rewrite})
        locked.run(*push)
        digests = {registry.digest(f"{place}/tests/every-kind", "25.02-plain") for place in ("a", "b")}
        assert len(digests) == 1
        assert None not in digests


def silent_server() -> SilentServer:
    return SilentServer()


class SilentServer:
    """Takes connections and never answers."""

    def __enter__(self) -> tuple[str, threading.Event]:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.taken: list[socket.socket] = []
        connected = threading.Event()

        def take() -> None:
            while True:
                try:
                    self.taken.append(self.listener.accept()[0])
                except OSError:
                    return
                connected.set()

        threading.Thread(target=take, daemon=True).start()
        return f"localhost:{self.listener.getsockname()[1]}", connected

    def __exit__(self, *exc: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.taken:
            connection.close()


def test_two_builds_at_once_make_one_image(project: Project) -> None:
    image = project.folder / "images/every-kind/image.yaml"
    unique = secrets.token_hex(4)  # or the engine would have the step in its cache, and the first build no length
    image.write_text(image.read_text().replace("sleep 60", f"true {unique} && sleep 5"))
    slow = ("25.02", "--variant", "slow")
    project.run("lock", *slow)
    first = project.start("build", *slow)
    lock = project.cache / "records/every-kind/.25.02-slow.build.lock"
    while not lock.exists() and first.poll() is None:
        time.sleep(0.01)
    second = project.finish(project.start("build", *slow))
    done = project.finish(first)
    assert (done.returncode, second.returncode) == (0, 0), done.stderr + second.stderr
    assert "another build of 25.02-slow is running; waiting for it" in second.stderr
    assert "built in" in done.stdout
    assert "up to date" in second.stdout
    assert done.stdout.split()[:2] == second.stdout.split()[:2]


def test_damaged_files_of_the_cache_are_fetched_again_and_the_image_is_right(
    locked: Project, packages: Loopback, kits: Loopback
) -> None:
    locked.run("fetch", *PLAIN)
    stored = {path.stat().st_size: path for path in (locked.cache / "artifacts/sha256").rglob("*") if is_file(path)}
    offered = [*packages.projects["helper"].values(), packages.projects["tool"]["tool-1.0-py3-none-any.whl"]]
    (archive,) = (content for name, content in kits.archives.items() if name.endswith(".tar.gz"))
    helper, tool, kit = (stored[len(content)] for content in (*offered, archive))
    damage(helper, offered[0][:-200])
    damage(tool, offered[1].replace(b"tool", b"fool"))
    damage(kit, archive + b"\0")
    done = locked.attempt("build", *PLAIN)
    assert done.returncode == 0, done.stderr
    assert "fetching 3 files" in done.stderr
    assert "component[tool]" in locked.run("verify", *PLAIN)
    assert (helper.read_bytes(), tool.read_bytes()) == tuple(offered)


def is_file(path: Path) -> bool:
    return path.is_file() and path.suffix == ""


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_secret_that_a_failing_step_shows_is_masked_everywhere(project: Project, as_json: bool) -> None:
    leaking = ("25.02", "--variant", "leaking")
    project.run("lock", *leaking)
    done = project.attempt("build", *leaking, *(["--json"] if as_json else []))
    assert done.returncode == 1
    assert "exit code 7" in done.stderr
    assert "once more ***" in done.stderr
    assert small.TOKEN not in done.stdout + done.stderr
    kept = [path for path in project.cache.rglob("*") if path.is_file() and path.parent.name != "bases"]
    assert [path for path in kept if small.TOKEN.encode() in path.read_bytes()] == []
    if as_json:
        events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert events


def test_a_socket_that_we_may_not_use_is_explained(
    base_rootfs: Path, packages: Loopback, kits: Loopback, scratch: Scratch
) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("this engine's socket is ours: only root can become somebody else")
    folder = Path(tempfile.mkdtemp(prefix=scratch.prefix))  # pytest's own is closed to others
    try:
        project = Project.create(folder, *FAMILIES)
        small.configure(project, packages, kits)
        project.run("lock", *PLAIN)
        project.run("fetch", *PLAIN)
        nobody = pwd.getpwnam("nobody")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        command = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        command += [str(Path(sys.executable).with_name("lj-image")), "build", *PLAIN, "--builder", "docker"]
        done = subprocess.run(command, cwd=folder, env=project.environment(), capture_output=True, text=True)
        if "ermission denied" in done.stderr and "lj-image" in done.stderr.splitlines()[0]:
            pytest.skip("this engine's test machine does not let others run the program")
        assert done.returncode == 1, done.stderr
        assert "no permission to use the engine at" in done.stderr
        assert "group of the socket" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        shutil.rmtree(folder)


def test_a_registry_that_is_not_there_leaves_no_record_of_a_push(
    locked: Project, packages: Loopback, kits: Loopback, own_registry: Registry
) -> None:
    locked.run("build", *PLAIN)
    rewrite = {
        "registry.example": "localhost:9/nobody",
        "registry-vpc.{region}.example": f"{own_registry.address}/{{region}}",
    }
    small.configure(locked, packages, kits, build={"network": "none"}, endpoints={"rewrite": rewrite})
    said = locked.refuse(1, "push", *PLAIN, "--public", "--no-verify")
    assert "registry.example/tests/every-kind:25.02-plain" in said
    locked.refuse(3, "push", *PLAIN, "--public", "--region", "north", "--no-verify")
    record = json.loads((locked.cache / "records/every-kind/25.02-plain.json").read_text())
    assert [item["region"] for item in record["pushed"]] == ["north"]


def test_a_read_only_cache_that_holds_everything_says_what_it_cannot_do(locked: Project) -> None:
    if os.geteuid() != 0:
        pytest.skip("this engine's test machine lets only root mount a file system")
    locked.run("build", *PLAIN)
    mounted = subprocess.run(["mount", "--bind", str(locked.cache), str(locked.cache)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this engine's test machine lets nobody mount a file system")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(locked.cache)], check=True)
        assert "0 files fetched, 3 were there" in locked.run("fetch", *PLAIN)
        locked.run("plan", *PLAIN)
        for command in ("build", "verify"):
            said = locked.refuse(1, command, *PLAIN)
            assert str(locked.cache) in said
            assert "LJ_IMAGE_CACHE" in said
    finally:
        subprocess.run(["umount", str(locked.cache)], check=True)
    locked.run("build", *PLAIN)
