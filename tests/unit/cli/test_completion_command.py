"""What a shell offers after TAB: asked of real shells where they are, else of the program as they ask it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import COMMANDS, cli, run
from lj_image.cli.completions import BY_PARAMETER, OF_A_COMMAND
from samples.tiny import IMAGE, RELEASE

Write = Callable[..., Catalog]
Offered = Callable[..., list[str]]
BIN = Path(sys.executable).parent


@pytest.fixture
def project(write_catalog: Write, tmp_path: Path) -> Path:
    """Return the folder of a project with two images, both of which have a 25.03."""
    write_catalog(r25_03='release: "25.03"\nprevious: "25.02"\n')
    other = tmp_path / "images/small"
    (other / "releases").mkdir(parents=True)
    (other / "locks").mkdir()
    (other / "image.yaml").write_text(IMAGE.replace("image: tiny", "image: small").replace("north, south", "east"))
    (other / "releases/25.03.yaml").write_text(RELEASE.replace('"25.02"', '"25.03"'))
    (other / "releases/25.04.yaml").write_text('release: "25.04"\nprevious: "25.03"\n')
    (other / "locks/25.04-open.txt").write_text("# a lock\nnumpy==2.0 \\\n    --hash=sha256:00\nnumba==1\n")
    return tmp_path


def environment(project: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LJ_IMAGE_", "COMP_"))}
    return kept | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "LJ_IMAGE_CACHE": str(project / "cache"),
        "HOME": str(project),
    }


@pytest.fixture
def offered(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Offered:
    """Return a function that gives what bash would offer for the last word, as its script asks for it."""

    def ask(*words: str, folder: Path = project) -> list[str]:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COMP_WORDS", " ".join(("lj-image", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_LJ_IMAGE_COMPLETE", "bash_complete")
        monkeypatch.setenv("LJ_IMAGE_CACHE", str(project / "cache"))
        with pytest.raises(SystemExit):
            run([])
        said = capfd.readouterr()
        assert said.err == ""
        return [line.partition(",")[2] for line in said.out.splitlines() if line]

    return ask


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bu"], ["build"]),
        (["build", "25"], ["25.02", "25.04"]),
        (["build", ""], ["small/25.03", "25.04", "25.02", "tiny/25.03"]),
        (["build", "ti"], ["tiny/25.02", "tiny/25.03"]),
        (["build", "tiny/25.03", "--variant", ""], ["vendor", "open"]),
        (["build", "25.02", "--platform", "linux/ar"], ["linux/arm64"]),
        (["build", "25.02", "--builder", "docker"], ["docker", "docker-classic"]),
        (["release", "25.02", "--builder", "o"], ["oci"]),
        (["build", "25.02", "--output", "oci"], ["oci:", "oci-archive:"]),
        (["build", "25.02", "--only", "kit,t"], ["kit,tool"]),
        (["build", "25.02", "--set", "to"], ["tool=1.4.2+ali"]),
        (["set", "25.02", "tool=1.5.0", "k"], ["kit=12.8"]),
        (["push", "25.02", "--region", ""], ["all", "north", "south"]),
        (["push", "25.04", "--region", "e"], ["east"]),
        (["push", "--region", ""], ["all", "east", "north", "south"]),
        (["why", "25.04", "nu"], ["numpy", "numba"]),
        (["why", "25.02", "nu"], []),
        (["new", "25"], []),
        (["new", "25.05", "--from", "25"], ["25.02", "25.04"]),
        (["schema", "re"], ["release"]),
        (["build", "25.02", "--no-c"], ["--no-cache"]),
    ],
)
def test_what_may_stand_there_is_offered(offered: Offered, words: list[str], expected: list[str]) -> None:
    assert sorted(offered(*words)) == sorted(expected)


def test_bash_offers_it_through_the_script(project: Path) -> None:
    script = (
        'eval "$(lj-image completion bash)"; complete -p lj-image; '
        "COMP_WORDS=(lj-image build 25.02 --variant o) COMP_CWORD=4; _lj_image_completion lj-image; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=project, env=environment(project), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    registered, *found = done.stdout.splitlines()
    assert registered.endswith("-F _lj_image_completion lj-image")
    assert found == ["open"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_offers_it_through_the_script(project: Path) -> None:
    script = 'lj-image completion fish | source; complete -C "lj-image build 25.02 --variant o"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["open"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_understands_the_script_and_gets_its_answer(project: Path) -> None:
    script = "source <(lj-image completion zsh); whence -w _lj_image_completion"
    prelude = "autoload -Uz compinit; compinit -D -u; "
    done = subprocess.run(
        ["zsh", "-f", "-c", prelude + script],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "_lj_image_completion: function\n"
    asked = {"COMP_WORDS": "lj-image build 25.02 --variant o", "COMP_CWORD": "4", "_LJ_IMAGE_COMPLETE": "zsh_complete"}
    answer = subprocess.run(
        [BIN / "lj-image"], cwd=project, env=environment(project) | asked, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "plain\nopen\n_\n"


@pytest.mark.parametrize("broken", ["image: [tiny\n", "", "\t\n", "image: 25.10\n"])
@pytest.mark.parametrize("words", [["build", ""], ["build", "25.02", "--variant", ""], ["push", "--region", ""]])
def test_a_broken_catalog_offers_nothing_that_is_wrong_and_prints_nothing(
    project: Path, offered: Offered, broken: str, words: list[str]
) -> None:
    for family in ("tiny", "small"):
        (project / "images" / family / "image.yaml").write_text(broken)
    assert set(offered(*words)) <= {"25.02", "25.04", "tiny/25.03", "small/25.03"}


def test_outside_of_a_project_nothing_is_offered(tmp_path_factory: pytest.TempPathFactory, offered: Offered) -> None:
    assert offered("build", "", folder=tmp_path_factory.mktemp("outside")) == []


def test_every_name_in_the_tables_is_a_parameter_of_some_command() -> None:
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}  # type: ignore[attr-defined]
    parameters = {(name, item.name) for name, command in commands.items() if command for item in command.params}
    assert set(OF_A_COMMAND) <= parameters
    assert set(BY_PARAMETER) <= {name for _, name in parameters}


def test_a_shell_that_click_does_not_know_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err
