"""The command line as a whole: help, exit codes, errors; in this process, without an engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import COMMANDS, run
from lj_image.documents.nodes import read_document
from samples.tiny import RELEASE

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)


def test_every_command_is_a_module_and_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    not_commands = {
        "__init__",
        "__main__",
        "app",
        "selection",
        "workshop",
        "last",
        "completions",
        "assembling",
        "amounts",
        "options",
        "carried",
        "transfer_view",
    }
    files = {path.stem for path in (ROOT / "src/lj_image/cli").glob("*.py")} - not_commands
    modules = {name.removesuffix("_") for name in files}  # `import` is a word of Python
    assert set(COMMANDS) == modules
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_in_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"lj-image {name}" in capsys.readouterr().out.partition("Usage:")[2].partition("\n")[2]


def test_help_imports_neither_engine_nor_schema() -> None:
    code = "import sys; from lj_image.cli import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for library in ("docker", "httpx", "pydantic", "jinja2", "yaml", "rich"):
        assert f"'{library}'" not in done.stderr


def test_a_mistyped_command_names_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["biuld", "25.02"]) == 2
    assert "did you mean build?" in capsys.readouterr().err


def test_list_has_a_row_for_each_release(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    unavailable = 'release: "25.03"\nprevious: "25.02"\nvariants: {open: {unavailable: not public}}\n'
    catalog = write_catalog(r25_03=unavailable)
    assert run(["--images", str(catalog.root), "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "IMAGE  RELEASE  BASE   VARIANTS",
        "tiny   25.02    os 12  vendor, open",
        "tiny   25.03           vendor, (open)",
    ]
    assert run(["--images", str(catalog.root), "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["variants"] == {"vendor": None, "open": "not public"}


def test_show_names_what_stands_in(write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(write_catalog().root), "show", "25.02", "--variant", "open"]) == 0
    assert "stands in for the library" in capsys.readouterr().out


def test_a_fault_is_three_short_lines_and_exit_code_2(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = write_catalog(r25_02=RELEASE.replace('"25.02"', "25.02"))
    assert run(["--images", str(catalog.root), "show", "25.02"]) == 2
    message, place, way_out = capsys.readouterr().err.splitlines()
    assert message == "error: release: 25.02 is read as the number 25.02"
    assert place.endswith("releases/25.02.yaml:1:10")
    assert way_out == '  quote it: "25.02"'


def test_debug_shows_the_traceback_where_it_is_an_option_and_not_where_it_is_text(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    images = ["--images", str(write_catalog().root)]
    assert run(["--debug", *images, "show", "26.01"]) == 2
    assert "Traceback" in capsys.readouterr().err
    assert run([*images, "show", "--", "--debug"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_lint_counts_its_findings(write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]) -> None:
    catalog = write_catalog(r25_02=RELEASE.replace("tool:", "tol:"))
    assert run(["--images", str(catalog.root), "lint"]) == 2
    assert "unknown component 'tol'" in capsys.readouterr().out


def test_a_missing_lock_says_which_command_mends_it(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--images", str(write_catalog().root), "plan", "25.02"]) == 2
    assert "lj-image lock 25.02 --variant open" in capsys.readouterr().err


def test_outside_a_project_the_way_in_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["list"]) == 2
    assert "--images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["build", "25.02", "--set", "vllm"], "not `component=version`"),
        (["build", "25.02", "--set", "nothing=1"], "unknown component 'nothing'"),
        (["show", "25.02", "--platform", "windows/amd64"], "no platform 'windows/amd64'"),
        (["plan", "25.02", "--variant", "open", "--only", "vlm"], "did you mean vllm?"),
        (["push", "25.02", "--variant", "open", "--region", "cn-bejing"], "did you mean cn-beijing"),
        (["push", "25.02", "--variant", "open"], "nothing says where to publish"),
    ],
)
def test_a_wrong_argument_is_exit_code_2_and_says_what_to_write(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(arguments) == 2
    assert words in capsys.readouterr().err


def test_refs_prints_references_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["refs", "25.02", "--variant", "serverless"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    references = printed.out.splitlines()
    assert references[0] == (
        "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless"
    )
    assert "acs-registry-vpc.cn-beijing.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless" in references
    family = read_document(ROOT / "images/training-nv-pytorch/image.yaml").data
    assert len(references) == 1 + len(family["endpoints"]["vpc"]["regions"])
