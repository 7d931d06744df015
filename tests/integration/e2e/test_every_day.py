"""What people do with images that are there: look inside, and look after what was left. A record stands for a build."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from lj_image.release.record import Built, Record, Records
from standins.commands import PROGRAM, SMALL_BASE, Project

pytestmark = [pytest.mark.engine]

FAMILIES = Path(__file__).parents[2] / "families"
SELECT = ("25.02", "--variant", "plain")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, engine: docker.APIClient, base_image: str) -> Project:
    """Return a project whose record says that the base is the image of its release."""
    project = Project.create(tmp_path_factory.mktemp("days"), FAMILIES / "every-kind", SMALL_BASE)
    with (project.folder / "images/every-kind/image.yaml").open("a") as file:
        file.write("\nrun: {network: host, ipc: host}\n")
    project.configure({})
    image_id = engine.inspect_image(base_image)["Id"]
    built = Built(image_id, "t", "i", "p", "l", "docker", "b", "2025-03-01T10:00:00+00:00", 1.0, 1)
    record = Record("every-kind", "25.02", "plain", built)
    Records(project.cache, "every-kind").update("25.02-plain", lambda _: record)
    return project


def containers(engine: docker.APIClient) -> set[str]:
    """Return the shells' containers that are there, other people's too."""
    return {item["Id"] for item in engine.containers(all=True, filters={"label": "io.lj-image.shell"})}


@pytest.fixture
def nothing_left(engine: docker.APIClient) -> Callable[[], bool]:
    """Return a function that says whether every container that came since has gone."""
    before = containers(engine)

    def gone() -> bool:
        until = time.monotonic() + 15
        while containers(engine) - before:
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    return gone


def shell(project: Project, *command: str, stdin: str = "", options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(PROGRAM), "shell", *SELECT, *options, *(("--", *command) if command else ())],
        cwd=project.folder,
        env=project.environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_without_a_terminal_output_errors_and_exit_code_are_the_commands_own(
    project: Project, nothing_left: Callable[[], bool]
) -> None:
    code, out, err = shell(project, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (code, out) == (7, "out\n")
    assert err.endswith("err\n")
    assert nothing_left()


def test_a_script_can_be_piped_in(project: Project, nothing_left: Callable[[], bool]) -> None:
    assert shell(project, stdin="echo $((6*7))\nexit 3\n")[:2] == (3, "42\n")
    assert nothing_left()


def test_megabytes_pass_through_without_a_byte_lost(project: Project) -> None:
    text = "0123456789abcdef" * 200_000
    assert shell(project, "cat", stdin=text)[:2] == (0, text)


def test_a_folder_is_shown_and_not_written_to(project: Project, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("hello")
    mount = ("--mount", f"{tmp_path}:/shown:ro")
    code, out, _ = shell(project, "sh", "-c", "cat /shown/note; touch /shown/other", options=mount)
    if code == 0 and not out:
        pytest.skip("this engine does not see the folders of this machine")
    assert out == "hello"
    assert code != 0
    assert not (tmp_path / "other").exists()


def test_a_folder_that_is_not_there_is_an_error_and_not_made(project: Project, tmp_path: Path) -> None:
    code, _, err = shell(project, "true", options=("--mount", f"{tmp_path}/absent:/shown"))
    assert code == 1
    assert "absent" in err
    assert not (tmp_path / "absent").exists()


def test_a_program_that_the_image_does_not_have_is_named(project: Project, nothing_left: Callable[[], bool]) -> None:
    code, _, err = shell(project, "no-such-program")
    assert code == 1
    assert "no-such-program" in err
    assert nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_takes_the_container_away(
    project: Project, engine: docker.APIClient, nothing_left: Callable[[], bool], number: signal.Signals
) -> None:
    before = containers(engine)
    process = project.start("shell", *SELECT, "--", "sh", "-c", "echo begun; exec sleep 600")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    assert len(containers(engine) - before) == 1
    process.send_signal(number)
    assert project.finish(process, 60).returncode == 130
    assert nothing_left()


def test_even_kill_9_leaves_no_shell_behind(project: Project, nothing_left: Callable[[], bool]) -> None:
    process = subprocess.Popen(
        [str(PROGRAM), "shell", *SELECT],
        cwd=project.folder,
        env=project.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("echo begun\n")
    process.stdin.flush()
    assert process.stdout.readline() == "begun\n"
    process.kill()
    process.wait(30)
    process.stdin.close()
    process.stdout.close()
    assert nothing_left()


class Person:
    """Sits at a terminal of which `lj-image shell` has the other end."""

    def __init__(self, project: Project, *command: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(project.folder)
            environment = project.environment() | {"TERM": "dumb"}
            os.execve(PROGRAM, [str(PROGRAM), "shell", *SELECT, *command], environment)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def read_until(self, text: str, timeout_s: float = 60) -> str:
        shown, until = b"", time.monotonic() + timeout_s
        while text.encode() not in shown:
            if time.monotonic() > until:
                raise AssertionError(f"{text!r} does not come; so far: {shown.decode(errors='replace')}")
            if select.select([self._terminal], [], [], 0.2)[0]:
                try:
                    shown += os.read(self._terminal, 4096)
                except OSError:  # the other end is closed
                    break
        assert text.encode() in shown, shown
        return shown.decode(errors="replace")

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self._terminal)[3] & termios.ICANON

    def exit_code(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_person_has_a_terminal_with_its_size_and_every_key(
    project: Project, nothing_left: Callable[[], bool]
) -> None:
    person = Person(project)
    person.resize(33, 101)
    person.read_until("# ")
    person.type("tty; stty size\r")
    person.read_until("/dev/pts/")
    person.type("stty size\r")
    person.read_until("33 101")
    assert person.is_raw()
    person.resize(44, 111)
    time.sleep(1)
    person.type("stty size\r")
    person.read_until("44 111")
    person.type("sleep 600\r")
    time.sleep(1)
    person.type("\x03")  # Ctrl-C belongs to what runs inside
    person.type("echo still $((40+2))\r")
    person.read_until("still 42")
    person.type("\x10\x11")  # Ctrl-P, Ctrl-Q: does not detach
    person.type("\x15exit 5\r")
    assert person.exit_code() == 5
    assert nothing_left()


def test_sigterm_gives_the_terminal_back_as_it_was(project: Project, nothing_left: Callable[[], bool]) -> None:
    person = Person(project, "--", "sh", "-c", "echo begun; exec sleep 600")
    person.read_until("begun")
    assert person.is_raw()
    os.kill(person.pid, signal.SIGTERM)
    person.read_until("stopped by SIGTERM")
    assert not person.is_raw()
    assert person.exit_code() == 130
    assert nothing_left()


def test_history_knows_the_record(project: Project) -> None:
    assert "every-kind  25.02    plain" in project.run("history")
