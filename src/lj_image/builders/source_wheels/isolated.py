"""A source distribution is built by its own code on this machine, in an environment with a Python like the base's.

Its requirements are installed before any of its code runs, by uv, which alone gets to know an index's password; the
code itself is shown neither passwords, nor this user's environment, nor the home folder.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from warnings import catch_warnings

from lj_image.builders.source_wheels.settings import FIXED, LAST_LINES, ca_bundle, requirement_indexes
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.lock.lock import LockedDistribution
from lj_image.lock.uvtool import uv_environment, uv_program

WAY_OUT: Final = "or build where an engine answers: lj-image build --builder docker"
_UMASK: Final = 0o022
_INDEX_SETTINGS: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL")


@dataclass(frozen=True, slots=True)
class Isolation:
    """Where and with what a source is built."""

    room: Path
    """An empty folder, thrown away afterwards."""
    python: str
    """Major and minor version of the interpreter, such as 3.11."""
    config: Config
    env: Mapping[str, str]
    """What its component sets for the build."""
    legacy_pins: tuple[str, ...] = ()
    """Requirements that hold where a source names none: pip builds those with what the base has."""


def build_isolated(source: Path, item: LockedDistribution, where: Isolation) -> Path:
    """Build the wheel of a source distribution below `where.room` and return it; raises BuildError."""
    from build import BuildBackendException, BuildException, ProjectBuilder  # late: few releases have a source

    project = _unpacked(source, item.artifact.file, where.room / "source")
    interpreter = _environment(item, where)
    hooks = _Hooks(where, interpreter)
    try:
        with catch_warnings(action="ignore"):  # what a backend has to say to the source's author
            builder = ProjectBuilder(project, str(interpreter), hooks)
            is_legacy = not (project / "pyproject.toml").exists()
            _install(builder.build_system_requires, item, where, is_legacy=is_legacy)
            _install(builder.get_requires_for_build("wheel"), item, where, is_legacy=is_legacy)
            return Path(builder.build("wheel", where.room / "out"))
    except BuildBackendException:
        raise _failed(item, "its build ended with an error", hooks.end()) from None
    except BuildException as error:
        raise _failed(item, str(error), "") from None


@dataclass(frozen=True, slots=True)
class _Hooks:
    """Runs the hooks of a build backend (PEP 517), each in a process of its own."""

    where: Isolation
    interpreter: Path

    def __call__(
        self, cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None
    ) -> None:
        """Run one; raises CalledProcessError."""
        with self._log.open("wb") as log:
            subprocess.run(
                cmd,
                cwd=cwd,
                env={**self._variables(), **(extra_environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                umask=_UMASK,
                check=True,
            )

    def end(self) -> str:
        """Return the end of what the last one said."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").rstrip().splitlines()[-LAST_LINES:])

    @property
    def _log(self) -> Path:
        return self.where.room / "log"

    def _variables(self) -> dict[str, str]:
        """Return all that the source's code sees of this machine."""
        home = self.where.room / "home"
        home.mkdir(exist_ok=True)
        path = os.pathsep.join((str(self.interpreter.parent), os.defpath))
        own = {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "VIRTUAL_ENV": str(self.interpreter.parents[1])}
        return {**own, "LC_ALL": "C.UTF-8", "TZ": "UTC", **FIXED, **self.where.env}


def _environment(item: LockedDistribution, where: Isolation) -> Path:
    """Make a virtual environment and return its interpreter; uv finds one, or loads it where the user allows that."""
    folder = where.room / "venv"
    done = _uv(["venv", "--no-project", f"--python={where.python}", str(folder)], _uv_variables({}))
    if done.returncode:
        raise BuildError(
            f"{item.name} {item.version} is published as source only, and is built with Python {where.python} as the "
            f"base has it, which this machine lacks",
            hint=f"{_words(done, {})}\n"
            f"install Python {where.python}, or let uv load it: UV_PYTHON_DOWNLOADS=automatic\n{WAY_OUT}",
        )
    return folder / "bin" / "python"


def _install(requirements: Iterable[str], item: LockedDistribution, where: Isolation, *, is_legacy: bool) -> None:
    """Install build requirements; without a network, from what uv has in its cache."""
    wanted = sorted(requirements)
    if not wanted:
        return
    asked, pins = where.room / "requirements.txt", where.room / "constraints.txt"
    asked.write_text("".join(f"{line}\n" for line in wanted))
    pins.write_text("".join(f"{line}\n" for line in where.legacy_pins if is_legacy))
    # --no-build: a requirement that is a source itself would run its code with the passwords of the indexes.
    command = ["pip", "install", "--no-build", f"--python={where.room / 'venv'}", "-r", str(asked), "-c", str(pins)]
    passwords = _passwords(where.config)
    variables = _index_variables(where.config, passwords)
    done = _uv(command, variables)
    if done.returncode and _uv([*command, "--offline"], variables).returncode:
        raise BuildError(
            f"{item.name} {item.version} is published as source only, and what it is built with cannot be had: "
            f"{', '.join(wanted)}",
            hint=f"{_words(done, passwords)}\nbuild requirements come from the index `pypi`, as wheels\n{WAY_OUT}",
        )


def _uv(arguments: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [uv_program(), "--quiet", *arguments],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )


def _passwords(config: Config) -> dict[str, tuple[str, str]]:
    """Return user and password by the name under which uv is told of an index."""
    every = enumerate(requirement_indexes(config))
    return {f"lj{number}": (item.username, item.password or "") for number, item in every if item.username}


def _index_variables(config: Config, passwords: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    named = [f"lj{number}={item.url}" for number, item in enumerate(requirement_indexes(config))]
    variables = {name: value for name, value in _uv_variables(passwords).items() if name not in _INDEX_SETTINGS}
    bundle = ca_bundle(config)
    trusted = {"SSL_CERT_FILE": str(bundle)} if bundle else {}
    return {**variables, "UV_DEFAULT_INDEX": named[-1], "UV_INDEX": " ".join(named[:-1]), **trusted}


def _uv_variables(passwords: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return uv's environment; whether it may load an interpreter is for the user to say."""
    downloads = os.environ.get("UV_PYTHON_DOWNLOADS", "never")
    return {**uv_environment(os.environ, passwords), "UV_PYTHON_DOWNLOADS": downloads}


def _words(done: subprocess.CompletedProcess[str], passwords: Mapping[str, tuple[str, str]]) -> str:
    """Return the end of what uv said, and no password."""
    words = done.stderr.strip()
    for _, password in passwords.values():
        words = words.replace(password, "****") if password else words
    return "\n".join(words.splitlines()[-LAST_LINES:])


def _unpacked(source: Path, file: str, folder: Path) -> Path:
    """Unpack a source distribution and return its one folder; raises BuildError.

    Links become copies of what they lead to within the archive, so nothing is written, or read, outside of it.
    """
    try:
        (_unzip if file.endswith(".zip") else _untar)(source, folder)
    except (OSError, EOFError, KeyError, ValueError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        raise BuildError(f"{file} cannot be unpacked: {error}", hint="it was published like that") from None
    inside = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if len(inside) != 1:
        raise BuildError(f"{file} has {len(inside)} folders at its top, not one, so it is no source distribution")
    return inside[0]


def _untar(source: Path, folder: Path) -> None:
    with tarfile.open(source) as tar:
        for member in tar:
            if member.isdir():
                _inside(folder, member.name).mkdir(parents=True, exist_ok=True)
            elif (content := tar.extractfile(member)) is not None:
                _write(_inside(folder, member.name), content.read, is_program=bool(member.mode & 0o111))
            else:
                raise ValueError(f"{member.name} is neither a file nor a folder")


def _unzip(source: Path, folder: Path) -> None:
    with zipfile.ZipFile(source) as pack:
        for item in pack.infolist():
            if not item.is_dir():
                with pack.open(item) as content:
                    is_program = bool(item.external_attr >> 16 & 0o111)
                    _write(_inside(folder, item.filename), content.read, is_program=is_program)


def _inside(folder: Path, name: str) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name} leads out of the archive")
    return folder / path


def _write(target: Path, read: Callable[[int], bytes], *, is_program: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for block in iter(lambda: read(1024 * 1024), b""):
            file.write(block)
    target.chmod(0o755 if is_program else 0o644)


def _failed(item: LockedDistribution, why: str, output: str) -> BuildError:
    end = f"the end of its output:\n{output}\n" if output else ""
    return BuildError(
        f"{item.name} {item.version} cannot be built from its source on this machine: {why}", hint=f"{end}{WAY_OUT}"
    )
