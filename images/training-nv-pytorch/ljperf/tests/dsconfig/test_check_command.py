"""`ljperf check` as it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ljperf.cli.check import command
from ljperf.errors import LjperfError

GOOD = '{\n  "train_micro_batch_size_per_gpu": 1,\n  "zero_optimization": {\n    "stage": 3\n  }\n}\n'


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.return_value, result.output


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.json"
    path.write_text(GOOD)
    return path


def test_a_config_in_order_is_exit_code_0_and_shows_what_is_in_effect(config: Path) -> None:
    code, out = run(str(config))
    assert code == 0
    assert "0 errors, 0 warnings" in out
    assert "50,000,000" in out


def test_a_warning_is_exit_code_0_and_has_its_line(config: Path) -> None:
    config.write_text(GOOD.replace('"stage": 3', '"stage": 3,\n    "stage3_prefetch_bucket_size": 0'))
    code, out = run(str(config))
    assert code == 0
    assert f"{config}:5:5: warning /zero_optimization/stage3_prefetch_bucket_size: " in out


def test_an_error_is_exit_code_1(config: Path) -> None:
    config.write_text(GOOD.replace('"stage": 3', '"stage": 3,\n    "stage3_prefetch_bucket_size": 15099494.4'))
    code, out = run(str(config), "--hidden-size", "4096")
    assert code == 1
    assert "error /zero_optimization/stage3_prefetch_bucket_size: " in out


def test_a_comment_is_an_error_only_where_transformers_reads_the_file(config: Path) -> None:
    config.write_text(GOOD.replace('"stage": 3', '"stage": 3, // all\n    "reduce_bucket_size": 1000'))
    assert run(str(config))[0] == 0
    assert run(str(config), "--transformers")[0] == 1
    config.write_text(GOOD.replace('"stage": 3', '"stage": 3, // all\n    "reduce_bucket_size": "auto"'))
    assert run(str(config))[0] == 1
    assert run(str(config), "--no-transformers")[0] == 0


def test_json_has_pointers_lines_and_sizes(config: Path) -> None:
    config.write_text(GOOD.replace('"stage": 3', '"stage": "auto", "stage3_prefetch_bucket_size": "auto"'))
    code, out = run(str(config), "--json", "--model", "llama3-8b")
    document = json.loads(out)
    assert (code, document["transformers"], document["hidden_size"]) == (0, True, 4096)
    assert {"pointer", "line", "column", "severity", "message", "hint"} == set(document["findings"][0])
    config.write_text(GOOD)
    prefetch = {size["name"]: size for size in json.loads(run(str(config), "--json")[1])["sizes"]}
    assert prefetch["stage3_prefetch_bucket_size"]["deepspeed"] == 50_000_000


def test_the_world_size_and_the_version_are_taken(config: Path) -> None:
    config.write_text('{"train_batch_size": 7, "zero_optimization": {"stage": 1}}')
    assert run(str(config), "--world-size", "7")[0] == 0
    assert run(str(config), "--world-size", "2")[0] == 1
    config.write_text(GOOD.replace('"stage": 3', '"stage": 3, "leaf_module": {}'))
    assert run(str(config), "--deepspeed", "0.18.0")[0] == 0
    assert run(str(config), "--deepspeed", "0.17.6")[0] == 1


def test_training_arguments_are_compared(config: Path, tmp_path: Path) -> None:
    arguments = tmp_path / "args.yaml"
    arguments.write_text("per_device_train_batch_size: 2\n")
    assert run(str(config), "--transformers", "--arguments", str(arguments))[0] == 1
    arguments.write_text("per_device_train_batch_size: 1\n")
    assert run(str(config), "--transformers", "--arguments", str(arguments))[0] == 0
    arguments.write_text("- 1\n")
    with pytest.raises(LjperfError, match="names and values"):
        run(str(config), "--arguments", str(arguments))


def test_neither_torch_nor_deepspeed_is_imported(config: Path) -> None:
    program = (
        "import sys; from click.testing import CliRunner; from ljperf.cli.check import command; "
        f"assert 'stage' in CliRunner().invoke(command, [{str(config)!r}]).output; "
        "print([name for name in ('torch', 'deepspeed', 'transformers') if name in sys.modules])"
    )
    path = str(Path(__file__).parents[2] / "src")
    said = subprocess.check_output([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path}, text=True)
    assert said.strip() == "[]"
