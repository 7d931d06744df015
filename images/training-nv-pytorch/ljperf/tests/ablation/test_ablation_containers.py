"""Steps that are images: what `docker run` is asked for, by a `docker` of our own that notes it and plays the image."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ljperf.ablation.commands import Measurement, engine_answers
from ljperf.ablation.steps import Step

DOCKER = """#!{python}
import json, os, sys
from pathlib import Path
with open({noted!r}, "a") as out:
    out.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "run":
    mounts = dict(reversed(sys.argv[i + 1].split(":")[:2]) for i, word in enumerate(sys.argv) if word == "--volume")
    result = sys.argv[sys.argv.index("--json") + 1]
    folder, name = result.rsplit("/", 1)
    Path(mounts[folder], name).write_text(json.dumps({{"complete": True, "tokens_per_second": 7}}))
"""

STEP = Step("baseos", "", "ours:1", (("NCCL_ALGO", "Ring"),), ("--recompute", "full"))


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` first on the PATH; the file in which it notes its calls."""
    calls = tmp_path / "docker-calls"
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER.format(python=sys.executable, noted=str(calls)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return calls


def run_in(noted: Path) -> list[list[str]]:
    measurement = Measurement("ddp/tiny", ("--steps", "3"), engine_options=("--cpus=2",))
    result = noted.parent / "baseos-1.json"
    assert measurement(STEP, result, noted.parent / "baseos-1.log") == 0
    assert json.loads(result.read_text())["tokens_per_second"] == 7
    return [json.loads(line) for line in noted.read_text().splitlines()]


def test_the_result_comes_back_through_a_mounted_folder(noted: Path) -> None:
    asked = run_in(noted)[0]
    assert f"{noted.parent}:/ljperf-results" in asked


def test_our_own_source_and_its_requirements_are_lent_to_the_image_read_only(noted: Path) -> None:
    asked = run_in(noted)[0]
    lent = [word for word in asked if word.endswith(":ro")]
    assert [Path(word.split(":")[1]).name for word in lent] == ["ljperf", "click", "yaml"]
    assert all((Path(word.split(":")[0]) / "__init__.py").is_file() for word in lent)


def test_the_image_trains_with_the_steps_options_and_variables(noted: Path) -> None:
    asked = run_in(noted)[0]
    image = asked.index("ours:1")
    expected = "-m ljperf benchmark --model ddp/tiny --steps 3 --recompute full --json /ljperf-results/baseos-1.json"
    assert asked[image + 1 :] == expected.split()
    assert {"NCCL_ALGO=Ring", "--cpus=2", "--rm"} <= set(asked[:image])


def test_the_container_is_removed_by_name_whatever_became_of_docker_run(noted: Path) -> None:
    first, last = run_in(noted)
    assert last == ["rm", "--force", first[first.index("--name") + 1]]


def test_no_docker_is_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not engine_answers()


def test_a_docker_that_answers_is_an_engine(noted: Path) -> None:
    assert engine_answers()
    assert json.loads(noted.read_text()) == ["version"]
