"""Compiled files of an installed wheel: where they lie, what they are, and that they are always the same."""

from __future__ import annotations

import importlib.util
import io
import marshal
import py_compile
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import CodeType

import pytest
from reference_installers import on_disk, pip_installs, pips_scheme

from lj_image.builders.oci.wheel import bytecode, pyc_writer
from lj_image.builders.oci.wheel.install import installed
from lj_image.errors import BuildError
from samples.wheels import INFO, SCHEME, Member, tree, wheel

PYTHON = "{}.{}".format(*sys.version_info)
HERE = replace(SCHEME, python=PYTHON)
SITE = HERE.site_packages
TAG = sys.implementation.cache_tag
SOURCE = b"""\
'''A module.'''
import os, sys
NAMES = ('path', 'a b', 1.5, 10**20, b'bytes', ...)
def has(name: str, *, kind=frozenset({'x'})) -> bool:
    return name in {'path', 'self', 'os', 'zeta', 'alpha'} and [n for n in NAMES if n is name][1:2]
class App:
    def run(self): return lambda: (self, __class__)
"""


def compiled(folder: Path, *members: Member) -> dict[str, bytes]:
    found = tree(installed(wheel(folder, *members), HERE, bytecode="unchecked-hash"))
    return {path: content for path, (_, content) in found.items() if path.endswith(".pyc")}


def test_every_installed_source_has_one_beside_it(tmp_path: Path) -> None:
    members = [
        Member("tiny/__init__.py"),
        Member("tiny/a.b.py"),
        Member("tiny/data.txt"),
        Member("tiny-1.0.data/purelib/more.py"),
        Member("tiny-1.0.data/scripts/run.py", b"#!python\n"),
        Member("tiny-1.0.data/data/share/x.py"),
    ]
    assert list(compiled(tmp_path, *members)) == [
        f"usr/local/bin/__pycache__/run.{TAG}.pyc",
        f"{SITE}/__pycache__/more.{TAG}.pyc",
        f"{SITE}/tiny/__pycache__/__init__.{TAG}.pyc",
        f"{SITE}/tiny/__pycache__/a.b.{TAG}.pyc",
        f"usr/local/share/__pycache__/x.{TAG}.pyc",
    ]


def test_it_is_what_python_writes_and_knows_where_its_source_lies(tmp_path: Path) -> None:
    plain = compiled(tmp_path, Member("tiny.py", SOURCE))[f"{SITE}/__pycache__/tiny.{TAG}.pyc"]
    (tmp_path / "tiny.py").write_bytes(SOURCE)
    theirs = py_compile.compile(
        str(tmp_path / "tiny.py"),
        dfile=f"/{SITE}/tiny.py",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    assert theirs is not None
    expected = Path(theirs).read_bytes()
    assert plain[:16] == expected[:16]
    assert marshal.loads(plain[16:]) == marshal.loads(expected[16:])
    assert marshal.loads(plain[16:]).co_filename == f"/{SITE}/tiny.py"


def test_python_runs_it_without_looking_at_the_source(tmp_path: Path) -> None:
    plain = compiled(tmp_path, Member("tiny.py", b"print('compiled')\n"))[f"{SITE}/__pycache__/tiny.{TAG}.pyc"]
    cached = Path(importlib.util.cache_from_source(str(tmp_path / "tiny.py")))
    cached.parent.mkdir()
    cached.write_bytes(plain)
    (tmp_path / "tiny.py").write_text("print('source')\n")
    asked = [sys.executable, "-B", "-c", "import tiny"]
    assert subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "compiled\n"


def test_a_source_that_does_not_compile_is_left_out_as_pip_does(tmp_path: Path) -> None:
    faulty = [Member("a.py", b"print 'two'\n"), Member("b.py", b"\xff"), Member("c.py", b"x = '\0'"), Member("d.py")]
    assert list(compiled(tmp_path, *faulty)) == [f"{SITE}/__pycache__/d.{TAG}.pyc"]


def test_modes_times_and_rows_are_those_of_pip(tmp_path: Path) -> None:
    found = {file.path: file for file in installed(wheel(tmp_path, Member("d.py")), HERE, bytecode="unchecked-hash")}
    file = found[f"{SITE}/__pycache__/d.{TAG}.pyc"]
    assert (file.mode, file.mtime) == (0o644, found[f"{SITE}/d.py"].mtime)
    rows = tree(found.values())[f"{SITE}/{INFO}/RECORD"][1].decode().split("\r\n")
    assert f"__pycache__/d.{TAG}.pyc,," in rows


def test_pip_compiles_the_same_files_and_lists_them_alike(tmp_path: Path) -> None:
    members = [Member("tiny/a.py"), Member("tiny/bad.py", b"("), Member("tiny-1.0.data/data/x.py")]
    source, scheme = wheel(tmp_path, *members), pips_scheme()
    pip_installs(source, tmp_path / "root", scheme, pycompile=True)
    ours = tree(installed(source, scheme, bytecode="unchecked-hash"))
    theirs = on_disk(tmp_path / "root")
    assert list(ours) == list(theirs)
    assert {path: mode for path, (mode, _) in ours.items()} == {path: mode for path, (mode, _) in theirs.items()}
    record = f"{SITE}/{INFO}/RECORD"
    names = [[row.partition(b",")[0] for row in tree_[record][1].split(b"\r\n")] for tree_ in (ours, theirs)]
    # pip writes the path of what it compiles as it is on its disk, which is the image's when it runs there.
    assert {name.removeprefix(b"../" * 9) for name in names[0]} == set(names[1])


def test_a_wheel_that_brings_its_own_keeps_them(tmp_path: Path) -> None:
    own = Member(f"__pycache__/d.{TAG}.pyc", b"theirs")
    assert compiled(tmp_path, own, Member("d.py")) == {f"{SITE}/{own.name}": b"theirs"}


def test_without_sources_no_python_is_asked_for(tmp_path: Path) -> None:
    scheme = replace(SCHEME, python="2.7")
    assert list(installed(wheel(tmp_path, Member("a.txt")), scheme, bytecode="unchecked-hash"))


def test_without_the_images_python_it_says_what_to_do(tmp_path: Path) -> None:
    source = wheel(tmp_path, Member("a.py"))
    with pytest.raises(BuildError) as caught:
        list(installed(source, replace(SCHEME, python="3.99"), bytecode="unchecked-hash"))
    assert caught.value.message == "bytecode is asked for, and there is no Python 3.99 here to compile it"
    assert "uv python install 3.99" in str(caught.value.hint)
    assert "bytecode: none" in str(caught.value.hint)


def test_a_shim_is_passed_over_for_the_python_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho cpython-399 /opt/python/bin/python\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bytecode.interpreter.__wrapped__("3.99") == "/opt/python/bin/python"


def test_settings_of_python_do_not_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled(tmp_path, Member("tiny.py", SOURCE))
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert compiled(tmp_path, Member("tiny.py", SOURCE)) == before


def test_a_python_that_ends_is_an_error_by_wheel_and_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "interpreter", lambda python: "/bin/false")
    with pytest.raises(BuildError, match=r"tiny-1\.0-py3-none-any\.whl: .*while compiling it"):
        compiled(tmp_path, Member("a.py", b"x" * 1_000_000))


def test_the_bytes_do_not_depend_on_what_else_the_process_has_seen(tmp_path: Path) -> None:
    """Names that are alive elsewhere have more references, which marshal would write down."""
    alone = compiled(tmp_path, Member("tiny.py", SOURCE))[f"{SITE}/__pycache__/tiny.{TAG}.pyc"]
    others = [Member(f"a{number}.py", SOURCE + b"kept = 1\n") for number in range(3)]
    assert compiled(tmp_path, *others, Member("tiny.py", SOURCE))[f"{SITE}/__pycache__/tiny.{TAG}.pyc"] == alone
    alive = [sys.intern(name) for name in ("zeta", "alpha", "NAMES", "has", "App", "run", "kind")]
    assert pyc_writer.compiled(SOURCE, f"/{SITE}/tiny.py") == alone, alive


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_bytes_do_not_depend_on_the_hash_seed(seed: str) -> None:
    program = Path(pyc_writer.__file__).read_text()
    frames = b"".join(len(part).to_bytes(4, "big") + part for part in (b"/x.py", SOURCE))
    asked = [sys.executable, "-c", program]
    answer = io.BytesIO(
        subprocess.run(asked, input=frames, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
    )
    assert pyc_writer.read_frame(answer) == TAG.encode()
    assert pyc_writer.read_frame(answer) == pyc_writer.compiled(SOURCE, "/x.py")


def test_a_dump_is_that_of_marshal_for_whoever_loads_it() -> None:
    code = compile(SOURCE, "/x.py", "exec")
    assert isinstance(code, CodeType)
    assert marshal.loads(pyc_writer.dumped(code)) == code
