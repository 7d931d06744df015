"""Installed sources -> their compiled files, the same bytes on every machine (PEP 552, unchecked hashes)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from lj_image.builders.oci.entries import FILE_MODE, File, Written, ZipMember
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.members import read_member
from lj_image.builders.oci.wheel.pyc_writer import read_frame
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.errors import BuildError, LjImageError
from lj_image.lock.uvtool import uv_program

_PROGRAM: Final = Path(__file__).with_name("pyc_writer.py")
# No site, no warnings, no files beside it.
_OPTIONS: Final = ("-S", "-s", "-B", "-W", "ignore")
_TIMEOUT_S: Final = 60
_HINT: Final = "set `bytecode: none` in image.yaml, or build with: --builder docker"


def compiled(
    wheel: Wheel, archive: zipfile.ZipFile, scheme: Scheme, mtime: int, sources: Iterable[File]
) -> Iterator[File]:
    """Yield the compiled file of each source, in `__pycache__` beside it; a source with a fault has none.

    As with `pip install --compile`, every installed `.py` is one, scripts and data too. Raises BuildError when there is
    no Python of the image's version, or when it fails.
    """
    tag = _cache_tag(scheme.python)
    ordered = sorted(sources, key=lambda file: file.path)
    if not ordered:
        return
    with _compiler(interpreter(scheme.python)) as compiler:
        for file in ordered:
            plain = _answer(compiler, f"/{file.path}".encode(), _source(wheel, archive, file))
            if plain is None:
                raise wheel.fault(file.path, f"Python {scheme.python} ended while compiling it", hint=_HINT)
            if plain:
                yield File(compiled_path(file.path, tag), FILE_MODE, mtime, Written(plain), wheel.file)


def compiled_path(path: str, tag: str) -> str:
    """Return where a source's compiled file lies (PEP 3147): a/b.py -> a/__pycache__/b.cpython-311.pyc."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return f"{folder}/__pycache__/{stem or ending}.{tag}.pyc"


@cache
def interpreter(python: str) -> str:
    """Return a Python of a minor version, such as 3.11; raises BuildError when this machine has none."""
    for candidate in _candidates(python):
        tag, executable = _introduced(candidate)
        if tag == _cache_tag(python):
            return executable
    raise BuildError(
        f"bytecode is asked for, and there is no Python {python} here to compile it",
        hint=f"run: uv python install {python}\nor {_HINT}",
    )


def _candidates(python: str) -> Iterator[str]:
    yield sys.executable
    if (found := shutil.which(f"python{python}")) is not None:
        yield found
    try:
        asked = [uv_program(), "python", "find", "--no-python-downloads", "--no-project", python]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True).stdout.strip()
    except (LjImageError, OSError, subprocess.SubprocessError):
        return
    yield found


def _introduced(candidate: str) -> tuple[str, str]:
    """Return what a Python calls itself and where it lies; nothing if it does not run, as a version manager's shim."""
    command = [candidate, *_OPTIONS, "-c", "import sys; print(sys.implementation.cache_tag, sys.executable)"]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=_environment(), cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return "", ""
    tag, _, executable = asked.stdout.strip().partition(" ")
    return tag, executable


def _environment() -> dict[str, str]:
    """Return ours without what decides about Python; before 3.11, the hash seed orders the names in a frozenset."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONHASHSEED": "0"}


def _cache_tag(python: str) -> str:
    return f"cpython-{python.replace('.', '')}"


@contextmanager
def _compiler(python: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one Python for all of a wheel's sources."""
    command = [python, *_OPTIONS, "-c", _PROGRAM.read_text(encoding="utf-8")]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    # In a folder where nobody's modules lie, since a program given by -c finds those first.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, env=_environment(), cwd="/") as child:
        try:
            assert child.stdout is not None
            read_frame(child.stdout)  # which Python it is; that was asked before
            yield child
        finally:
            child.kill()
            with suppress(BrokenPipeError):
                assert child.stdin is not None
                child.stdin.close()


def _answer(compiler: subprocess.Popen[bytes], *frames: bytes) -> bytes | None:
    """Send frames, and return the one that answers them; None when the compiler is gone."""
    assert compiler.stdin is not None
    assert compiler.stdout is not None
    try:
        for frame in frames:
            compiler.stdin.write(len(frame).to_bytes(4, "big") + frame)
        compiler.stdin.flush()
    except BrokenPipeError:
        return None
    return read_frame(compiler.stdout)


def _source(wheel: Wheel, archive: zipfile.ZipFile, file: File) -> bytes:
    match file.content:
        case ZipMember(name=name):
            return read_member(wheel, archive, archive.getinfo(name))
        case Written(content):
            return content
        case _:
            raise AssertionError(f"{file.path} comes from no wheel")
