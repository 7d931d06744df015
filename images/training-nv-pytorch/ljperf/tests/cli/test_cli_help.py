"""The command line as a whole: help costs little, every command is there, failures are short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ljperf.cli import COMMANDS, ljperf

SOURCES = Path(__file__).parents[2] / "src"
HEAVY = "('torch', 'transformers', 'deepspeed', 'accelerate', 'yaml')"


def python(program: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": str(SOURCES)}
    return subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)


def test_help_imports_neither_pytorch_nor_any_command() -> None:
    loaded = f"print([name for name in sys.modules if name in {HEAVY} or name.startswith('ljperf.cli.')])"
    done = python(f"import sys; sys.argv[1:] = ['--help']\nfrom ljperf.cli import main\ntry: main()\nfinally: {loaded}")
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Commands:" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_commands_help_needs_no_pytorch(name: str) -> None:
    program = f"import sys; sys.argv[1:] = ['{name}', '-h']\nfrom ljperf.cli import main\n"
    done = python(program + "try: main()\nfinally: print('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage:")
    assert done.stdout.splitlines()[-1] == "False"


def test_every_command_is_in_the_help() -> None:
    shown = CliRunner().invoke(ljperf, ["--help"]).output
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_an_expected_failure_is_short_and_has_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ljperf", "plan", "--model", "lama3-8b", "--device", "h20-96g"],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "llama3-8b" in done.stderr
    assert done.stderr.startswith("ljperf: ")
