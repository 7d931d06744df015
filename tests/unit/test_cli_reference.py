"""docs/cli.md tells every command, and is what its command gives now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lj_image.cli import COMMANDS, run

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "cli.md").read_text()


def test_the_reference_is_what_its_command_gives_now() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/cli-reference"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == REFERENCE, "run: make generate"


def test_the_first_line_names_the_command_that_makes_it() -> None:
    assert "scripts/cli-reference" in REFERENCE.partition("\n")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_reference_with_usage_and_example(name: str) -> None:
    _, _, section = REFERENCE.partition(f"\n## lj-image {name}\n")
    section = section.partition("\n## ")[0]
    assert f"```\nlj-image {name}" in section
    assert f"```console\n$ lj-image {name}" in section


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_section_with_a_meaning(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    section = REFERENCE.partition(f"\n## lj-image {name}\n")[2].partition("\n## lj-image ")[0]
    shown = [word.rstrip(",") for word in capsys.readouterr().out.split("Options:")[1].split() if word[:2] == "--"]
    named = {word.strip("[]`") for word in section.replace("|", " ").split() if word.strip("[]`").startswith("--")}
    assert set(shown) - {"--help"} <= named
    assert "` |  |" not in section, "an option without a help text"
