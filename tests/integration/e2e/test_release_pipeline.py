"""One command takes the small family all the way; killed in any of its steps, it goes on there and repeats nothing."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest

from standins import small
from standins.commands import PROGRAM, SMALL_BASE, Project
from standins.registries import Registry, running
from unit.lock.loopback import Loopback

pytestmark = [pytest.mark.engine, pytest.mark.registry]

TESTS = Path(__file__).parents[2]
FAMILIES = (TESTS / "families/every-kind", SMALL_BASE)
PLAIN = ("25.02", "--variant", "plain")
EVERYWHERE = ("--public", "--region", "all")
STEPS = ("lint", "lock", "build", "verify", "push", "notes")
PLACES = ("public", "north", "south")
PROMISED = 'plain: {components: {kit: 1.2.3, notes: "1", tool: "1.0"}}'
SLOW = "      slow:\n        kind: run\n"
STEP = """\
      plain:
        kind: run
        commands: [echo asleep {unique}, sleep 3]
        check: echo 7
        expect: "7"
"""
"""A step that no engine has in its cache, long enough to be killed in."""
NOTES = "notes: {product: the tests, scenario: Tests, framework: none, languages: [en]}\n"


@dataclass
class Line:
    """A project, and registries that can be taken away from it."""

    project: Project
    registry: Registry
    packages: Loopback
    kits: Loopback
    engine: docker.APIClient

    def connect(self, **elsewhere: str) -> None:
        """Write the config: every place in the registry, except those named."""
        at = {place: f"{self.registry.address}/{place}" for place in PLACES} | elsewhere
        rewrite = {"registry.example": at["public"]}
        rewrite |= {f"registry-vpc.{region}.example": at[region] for region in ("north", "south")}
        small.configure(
            self.project, self.packages, self.kits, build={"network": "none"}, endpoints={"rewrite": rewrite}
        )

    def release(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the command once."""
        started = self.project.start("release", *PLAIN, *(options or EVERYWHERE))
        done = self.project.finish(started, timeout_s=300)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def state(self) -> dict[str, Any]:
        """Return what is kept of each step."""
        path = self.project.cache / "records/every-kind/runs/25.02-plain.json"
        steps: dict[str, Any] = json.loads(path.read_text())["steps"]
        return steps

    def record(self) -> dict[str, Any]:
        """Return the record."""
        found: dict[str, Any] = json.loads((self.project.cache / "records/every-kind/25.02-plain.json").read_text())
        return found

    def digests(self) -> list[str | None]:
        """Return what the registry itself has in each place."""
        return [self.registry.digest(f"{place}/tests/every-kind", "25.02-plain") for place in PLACES]

    @property
    def output(self) -> Path:
        """Where a run leaves its files."""
        return self.project.folder / "build/release/every-kind/25.02-plain"

    def report(self) -> dict[str, Any]:
        """Return what the last run wrote for machines."""
        found: dict[str, Any] = json.loads((self.output / "release.json").read_text())
        return found

    def states(self) -> dict[str, str]:
        """Return the state of each step of the last run."""
        return {step["name"]: step["state"] for step in self.report()["steps"]}


@pytest.fixture
def line(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    engine: docker.APIClient,
    base_image: str,
    base_rootfs: Path,
    packages: Loopback,
    kits: Loopback,
    remove_images: Callable[[str], None],
) -> Iterator[Line]:
    """Return a locked project in which nothing was built, and a registry of its own."""
    project = Project.create(tmp_path, *FAMILIES)
    project.keep(base_rootfs)
    manifest = project.folder / "images/every-kind/image.yaml"
    text = manifest.read_text().replace(SLOW, STEP.format(unique=secrets.token_hex(4)) + SLOW)
    manifest.write_text(NOTES + text)
    release = project.folder / "images/every-kind/releases/25.02.yaml"
    release.write_text(release.read_text().replace(PROMISED, PROMISED.replace("kit:", 'marker: "7", kit:')))
    remove_images("every-kind")
    with running(tmp_path_factory.mktemp("registry")) as registry:
        made = Line(project, registry, packages, kits, engine)
        made.connect()
        project.run("lock", *PLAIN)
        yield made


def stop_when(line: Line, ready: Callable[[str], bool], number: signal.Signals) -> tuple[int, str]:
    """Start the command, send a signal to it once it has said enough; return exit code and what it said."""
    process = subprocess.Popen(
        [str(PROGRAM), "release", *PLAIN, *EVERYWHERE],
        cwd=line.project.folder,
        env=line.project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    said, sent, deadline = "", False, time.monotonic() + 300
    while process.poll() is None:
        assert time.monotonic() < deadline, said
        said += (process.stdout.read() or b"").decode(errors="replace")
        if not sent and ready(said):
            os.killpg(process.pid, number)
            sent = True
        time.sleep(0.005)
    said += (process.stdout.read() or b"").decode(errors="replace")
    assert sent, f"ended before it could be stopped:\n{said}"
    assert "Traceback" not in said, said
    return process.returncode, said


def begun(step: str, *later: str) -> Callable[[str], bool]:
    """Return whether a step has begun, and has said something since."""
    return lambda said: f"{step}: " in said and all(word in said.partition(f"{step}: ")[2] for word in later)


class Stuck(BaseHTTPRequestHandler):
    """A registry without any tag, which never takes what is sent to it."""

    protocol_version = "HTTP/1.1"
    sending: threading.Event
    over: threading.Event

    def do_GET(self) -> None:
        known = self.path.rstrip("/") == "/v2"
        answer = b"{}" if known else b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no such tag"}]}'
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.sending.set()
        self.over.wait(60)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def stuck() -> Iterator[tuple[str, threading.Event]]:
    """Return the address of such a registry, and what is set once something is sent to it."""
    handler = type("OneStuck", (Stuck,), {"sending": threading.Event(), "over": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"localhost:{server.server_port}", handler.sending
    finally:
        handler.over.set()
        server.shutdown()
        server.server_close()


@contextmanager
def endless_notes(project: Project) -> Iterator[None]:
    """Give the project a template of its own that does not end."""
    template = project.folder / "templates/notes/note.md.j2"
    template.parent.mkdir(parents=True)
    template.write_text("{% for number in range(10 ** 12) %}{% endfor %}")
    yield
    shutil.rmtree(project.folder / "templates")


def remove_containers(engine: docker.APIClient, image_id: str) -> None:
    """Remove what a killed verification of an image has left."""
    for container in engine.containers(all=True, filters={"label": "io.lj-image.verify", "ancestor": image_id}):
        engine.remove_container(container["Id"], force=True, v=True)


EXIT_CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 130, signal.SIGINT: 130}


@pytest.mark.parametrize("number", EXIT_CODES, ids=lambda number: number.name)
def test_killed_in_every_step_it_goes_on_and_does_nothing_twice(line: Line, number: signal.Signals) -> None:
    def killed(ready: Callable[[str], bool]) -> str:
        code, said = stop_when(line, ready, number)
        assert code == EXIT_CODES[number], said
        return said

    for step in ("lint", "lock", "build"):
        # Lint and lock are over within a tenth of a second, so the signal may arrive in the step after.
        killed(begun(step))
        assert line.digests() == [None, None, None]
    killed(begun("build", "| asleep"))
    killed(begun("verify", "asking what is inside"))
    if EXIT_CODES[number] == 130:
        assert "**Interrupted**" in (line.output / "summary.md").read_text()
    built = line.record()["built"]
    assert line.record()["verified"] is None
    remove_containers(line.engine, built["image_id"])  # of a killed run it would end by itself, in an hour

    with stuck() as (address, sending):
        line.connect(south=f"{address}/south")
        said = killed(lambda _: sending.is_set() and len(line.record()["pushed"]) == 2)
    assert f"up to date: every-kind:25.02-plain {built['image_id']}" in said
    assert "verify: done, verified" in said
    proven, half = line.record()["verified"], line.record()["pushed"]
    assert {item["region"] for item in half} == {None, "north"}  # in the order in which they were done

    line.connect()
    with endless_notes(line.project):
        said = killed(begun("notes"))
    assert "verify: skipped, this image was proven at" in said
    assert "push: done, 1 sent, 2 had it" in said
    pushed = line.record()["pushed"]
    assert pushed[:2] == half

    done = line.release()
    assert done.returncode == 0, done.stderr
    assert f"up to date: every-kind:25.02-plain {built['image_id']}" in done.stderr
    assert "verify: skipped, this image was proven at" in done.stderr
    assert "push: skipped, already: 3 places have sha256:" in done.stderr
    assert (line.record()["verified"], line.record()["pushed"]) == (proven, pushed)
    assert line.record()["built"]["image_id"] == built["image_id"]
    assert line.digests() == [pushed[0]["digest"]] * 3
    assert not [path for path in line.project.folder.rglob("*.partial") if "artifacts" not in path.parts]

    before = (line.output / "notes.en.md").stat().st_mtime_ns
    assert "notes: skipped, unchanged" in line.release().stderr
    assert (line.output / "notes.en.md").stat().st_mtime_ns == before


def test_a_run_leaves_its_papers_and_says_on_one_line_where_the_image_is(line: Line, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    done = line.release(*EVERYWHERE, "--summary", str(page))
    assert done.returncode == 0, done.stderr
    names = {path.name for path in line.output.iterdir()}
    papers = {"summary.md", "release.json", "verify.json", "verify.junit.xml"}
    assert names == papers | {"notes.en.md", "notes.en.html", "notes.json"}
    digest = line.digests()[0]
    hosts = ("registry.example", "registry-vpc.north.example", "registry-vpc.south.example")
    expected = [f"{host}/tests/every-kind:25.02-plain@{digest}" for host in hosts]
    assert done.stdout.splitlines()[-1].split() == expected
    assert line.report()["references"] == expected
    assert page.read_text() == "before\n" + (line.output / "summary.md").read_text()
    assert "http" not in page.read_text()
    assert json.loads((line.output / "verify.json").read_text())["passed"] is True
    assert line.states() == dict.fromkeys(STEPS, "done")

    shutil.rmtree(line.output)  # as a clean checkout does; the proof itself is in the cache
    assert line.release().returncode == 0
    again = dict.fromkeys(("build", "verify", "push"), "skipped")
    assert line.states() == dict.fromkeys(STEPS, "done") | again
    assert {path.name for path in line.output.iterdir()} == names


def test_a_region_that_failed_is_run_again_alone(line: Line) -> None:
    line.connect(north="localhost:9/nobody")
    done = line.release()
    assert done.returncode == 3, done.stderr
    digest, nothing, south = line.digests()
    assert (nothing, south) == (None, digest)
    assert line.states()["push"] == "partly"
    assert line.states()["notes"] == "done"
    assert "2 of 3 places of this release have it; missing: north." in (line.output / "summary.md").read_text()
    assert "notes.json; not published, so not named: north" in done.stderr
    notes = line.output / "notes.en.md"
    assert f"| south | `registry-vpc.south.example/tests/every-kind:25.02-plain` | `{digest}` |" in notes.read_text()
    assert "| north |" not in notes.read_text()
    pushed = line.record()["pushed"]

    line.connect()
    again = line.release("--region", "north")
    assert again.returncode == 0, again.stderr
    assert line.digests() == [digest] * 3
    assert line.record()["pushed"][:2] == pushed
    assert [target["region"] for target in line.report()["targets"]] == ["north"]
    assert line.report()["missing"] == []
    assert line.states()["verify"] == "skipped"
    assert line.states()["notes"] == "done"  # they say where the image is
    assert "| north |" in notes.read_text()


def test_another_machine_does_not_give_a_region_an_image_of_its_own(line: Line) -> None:
    assert line.release("--public").returncode == 0
    digest = line.digests()[0]
    shutil.rmtree(line.project.cache / "records")
    tool = line.project.folder / "images/every-kind/rootfs/another.txt"
    tool.write_text("built elsewhere\n")
    done = line.release("--region", "north")
    assert done.returncode == 1
    assert f"is public as {digest}, and this machine has another image" in done.stderr
    assert line.digests() == [digest, None, None]


def test_a_dry_run_asks_and_leaves_nothing_behind(line: Line) -> None:
    done = line.release(*EVERYWHERE, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["name"]: step for step in json.loads(done.stdout)["steps"]}
    states = {"lint": "done", "lock": "done"} | dict.fromkeys(STEPS[2:], "planned")
    assert {name: step["state"] for name, step in steps.items()} == states
    assert steps["build"]["what"].startswith("would build 5 layers")
    assert steps["push"]["what"] == "would send to 3 of 3 places"
    assert line.engine.images("every-kind:25.02-plain") == []
    assert line.digests() == [None, None, None]
    assert not (line.project.folder / "build").exists()
    assert not (line.project.cache / "records").exists()

    assert line.release().returncode == 0
    before = (line.state(), line.record())
    assert "would send to 0 of 3 places" in line.release(*EVERYWHERE, "--dry-run").stdout
    assert (line.state(), line.record()) == before


def test_a_state_that_is_damaged_is_not_believed(line: Line) -> None:
    assert line.release("--public").returncode == 0
    proven = line.record()["verified"]["at"]
    state = line.project.cache / "records/every-kind/runs/25.02-plain.json"
    state.write_text(state.read_text()[:200])
    time.sleep(1.1)  # times in a record are in seconds
    done = line.release("--public")
    assert done.returncode == 0
    assert f"{state} cannot be believed" in done.stderr
    assert "verify: done, verified" in done.stderr
    assert line.record()["verified"]["at"] != proven
    assert line.states()["push"] == "skipped"


def test_a_test_of_the_image_that_changed_makes_the_proof_anew(line: Line) -> None:
    tests = line.project.folder / "images/every-kind/tests"
    tests.mkdir()
    (tests / "test_own.py").write_text("def test_own():\n    pass\n")
    assert line.release("--public").returncode == 0
    (tests / "test_own.py").write_text("def test_own():\n    assert 1 == 2\n")
    done = line.release("--public")
    assert done.returncode == 1
    assert "verify: failed, NOT verified" in done.stderr
    assert "test_own" in done.stderr
    assert list(line.states()) == ["lint", "lock", "build", "verify"]
    assert 'failures="1"' in (line.output / "verify.junit.xml").read_text()
    assert "**Failed** at verify." in (line.output / "summary.md").read_text()


def test_faults_in_files_are_exit_code_2_and_in_the_summary(line: Line, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    release = line.project.folder / "images/every-kind/releases/25.02.yaml"
    good = release.read_text()
    release.write_text(good.replace('notes: "1", tool: "1.0"', 'notes: "1", tool: "1.1"'))
    assert release.read_text() != good
    stale = line.release("--public", "--summary", str(page))
    assert stale.returncode == 2, stale.stderr
    assert "the lock of 25.02-plain is stale" in page.read_text()
    release.write_text(good.replace('release: "25.02"', "release: 25.02"))
    done = line.release("--public", "--summary", str(page))
    assert done.returncode == 2
    assert 'quote it: "25.02"' in page.read_text()
    release.write_text(good)
    assert line.release("--region", "noth").returncode == 2
    assert line.release("--dry-run").returncode == 2
    assert line.digests() == [None, None, None]
