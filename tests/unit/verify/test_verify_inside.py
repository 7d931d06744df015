from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from local_shell import LocalShell

from lj_image.errors import VerificationError
from lj_image.verify import inside
from lj_image.verify.agent import Answer, ask
from lj_image.verify.frames import Output


def one(**question: object) -> Answer:
    return ask(LocalShell(), {"it": question})["it"]


def test_the_agent_is_written_in_python_3_8_and_needs_nothing_of_ours() -> None:
    tree = ast.parse(Path(inside.__file__).read_text(), feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert not any(name.startswith("lj_image") for name in imported)
    ast.parse(inside.CALL, feature_version=(3, 8))


def test_all_questions_are_answered_also_when_one_has_no_answer() -> None:
    answers = ask(LocalShell(), {"a": {"op": "read_text", "path": "/nowhere"}, "b": {"op": "python_version"}})
    assert "No such file" in (answers["a"].error or "")
    assert answers["b"].value.startswith("3.")


def test_modules_are_imported_each_in_a_process_of_its_own() -> None:
    assert one(op="imports", module="json", timeout_s=20).value == {"imported": True, "message": ""}
    absent = one(op="imports", module="no_such_module", timeout_s=20).value
    assert absent == {"imported": False, "message": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert one(op="imports", module="antigravity_", timeout_s=0.001).value["message"] == "not imported after 0.001 s"


def test_files_are_described_and_absent_ones_are_none(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"hello")
    (tmp_path / "f").chmod(0o640)
    (tmp_path / "l").symlink_to("f")
    found = one(op="files", paths=[f"{tmp_path}/{name}" for name in "flx"]).value
    assert found[f"{tmp_path}/f"]["mode"] == 0o640
    assert found[f"{tmp_path}/f"]["sha256"] == subprocess.check_output(["sha256sum", tmp_path / "f"], text=True)[:64]
    assert found[f"{tmp_path}/l"]["link"] == "f"
    assert found[f"{tmp_path}/x"] is None


def test_a_command_gives_exit_code_and_both_outputs() -> None:
    assert one(op="run", command="echo a; echo b >&2; exit 4", timeout_s=5).value == {
        "exit_code": 4,
        "output": "a\nb\n",
    }


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A library that needs another one, each in a folder of its own, as NVIDIA's wheels are."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to compile a library")
    for name in ("main", "side"):
        (tmp_path / name).mkdir()
    (tmp_path / "side.c").write_text("int side(void) { return 22304; }")
    (tmp_path / "main.c").write_text("int side(void); int ask(int *v) { *v = side(); return 0; }")
    build = ["gcc", "-shared", "-fPIC", "-nostdlib"]
    side = tmp_path / "main" / "libside.so.1"
    subprocess.run([*build, "-Wl,-soname,libside.so.1", "-o", side, tmp_path / "side.c"], check=True)
    subprocess.run([*build, "-o", tmp_path / "main" / "libmain.so.2", tmp_path / "main.c", side], check=True)
    return tmp_path / "main"


LIBRARY = {"op": "library", "stem": "main", "function": "ask", "outputs": 1, "sonames": ["libmain.so.2"]}


def test_a_library_is_called_with_the_neighbours_that_the_loader_does_not_find(compiled: Path) -> None:
    found = one(**LIBRARY, below=str(compiled)).value
    assert found == {"values": [22304], "path": f"{compiled}/libmain.so.2"}


def test_a_library_is_found_by_the_loader(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(compiled))
    assert one(**LIBRARY).value["path"] == f"{compiled}/libmain.so.2"


def test_a_library_that_is_nowhere_or_broken_says_so(compiled: Path) -> None:
    assert one(**LIBRARY, distributions=["no-such"]).error == "libmain.so was not found in the files of no-such"
    (compiled / "libmain.so.2").write_bytes(b"broken")
    assert "libmain.so.2" in (one(**LIBRARY, below=str(compiled)).error or "")


def test_a_library_that_ends_its_process_does_not_end_the_agent(compiled: Path) -> None:
    (compiled / "x.c").write_text("int ask(int *v) { *(volatile int *)0 = 1; return 0; }")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-nostdlib", "-o", compiled / "libmain.so.2", compiled / "x.c"], check=True
    )
    assert (one(**LIBRARY, below=str(compiled)).error or "").endswith("ended by signal 11")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution, of which pip compiled one file itself."""
    info = tmp_path / "thing-1.0.dist-info"
    info.mkdir()
    (tmp_path / "thing.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    rows = [
        "thing.py,sha256=abc,6",
        "thing.whl,sha256=abc,6",
        "__pycache__/thing.pyc,,",
        "thing-1.0.dist-info/METADATA,,",
    ]
    (info / "RECORD").write_text("\n".join(rows))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_installed_distributions_are_listed_with_their_place(site: Path) -> None:
    assert {"name": "thing", "version": "1.0", "location": str(site)} in one(op="distributions").value


def test_recorded_files_are_digested_and_missing_ones_say_so(site: Path) -> None:
    found = one(op="recorded", names=["thing", "absent"]).value
    assert found["absent"] is None
    assert len(found["thing"][f"{site}/thing.py"]) == 64
    assert found["thing"][f"{site}/thing.whl"] == "No such file or directory"


def test_what_a_wheel_brought_is_owned_and_what_pip_compiled_is_not(site: Path) -> None:
    paths = [f"{site}/{name}" for name in ("thing.whl", "__pycache__/thing.pyc", "stray.whl")]
    assert one(op="owned", paths=paths).value == paths[:1]


def test_torchs_version_is_read_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.5.1+cu124'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert one(op="torch_version").value == "2.5.1+cu124"


def test_a_module_in_the_working_directory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('wrong json')")
    monkeypatch.chdir(tmp_path)
    assert one(op="python_version").value.startswith("3.")


class Broken(LocalShell):
    def __init__(self, output: Output) -> None:
        self.output = output

    def run(self, command: str | bytes, *, stdin: str | None = None, timeout_s: float = 60) -> Output:
        return self.output


def test_an_image_without_python_is_an_error() -> None:
    with pytest.raises(VerificationError, match="there is no python3 in the image"):
        ask(Broken(Output(127, b"", b"sh: python3: not found\n")), {"a": {"op": "python_version"}})


def test_a_python_that_does_not_work_is_an_error_with_its_last_words() -> None:
    with pytest.raises(VerificationError, match="No module named encodings"):
        ask(Broken(Output(1, b"", b"Fatal\nNo module named encodings\n")), {"a": {"op": "python_version"}})


def test_nothing_is_asked_when_there_is_no_question() -> None:
    assert ask(Broken(Output(1, b"", b"")), {}) == {}
