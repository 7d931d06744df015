from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ljperf.benchmark.place import NoDeviceError
from ljperf.benchmark.request import UnknownFrameworkError
from ljperf.benchmark.run import NoMemoryError
from ljperf.cli.benchmark import _deliver, command
from ljperf.errors import LjperfError, PartialResultError, UnknownModelError, UsageError
from ljperf.report.files import ReportNotWrittenError
from ranks import environment, run_alone

LJPERF = [sys.executable, "-m", "ljperf", "benchmark"]
SHORT = ("--sequence", "32", "--steps", "2", "--warmup", "1")
ENOUGH_S = 60


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def run(*arguments: str) -> int:
    """In this process: one rank, on its own."""
    code: int = command.main(list(arguments), standalone_mode=False)
    return code


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of a real run."""
    path = tmp_path_factory.mktemp("kept") / "r.json"
    assert run("--model", "ddp/tiny", *SHORT, "--json", str(path)) == 0
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def test_a_run_reports_speed_memory_loss_versions_and_seed(kept: dict[str, Any]) -> None:
    assert kept["complete"]
    assert kept["tokens_per_second"] == pytest.approx(2 * 32 / sum(kept["step_seconds"]["all"]))
    assert kept["loss"]["first"] == pytest.approx(6.24, abs=0.1)  # ln 512: nothing is learnt yet
    assert len(kept["loss"]["all"]) == 3
    assert kept["mfu"] is None
    assert 2**26 < kept["memory"]["host"] < 2**33
    assert kept["versions"]["torch"]
    assert kept["seed"] == 0


def test_the_same_seed_gives_the_same_losses(kept: dict[str, Any], tmp_path: Path) -> None:
    again, other = tmp_path / "again.json", tmp_path / "other.json"
    run("--model", "ddp/tiny", *SHORT, "--json", str(again))
    run("--model", "ddp/tiny", *SHORT, "--seed", "1", "--json", str(other))
    assert json.loads(again.read_text())["loss"] == kept["loss"]
    assert json.loads(other.read_text())["loss"] != kept["loss"]


def test_accumulation_trains_on_more_sequences_a_step(tmp_path: Path) -> None:
    path, trace = tmp_path / "r.json", tmp_path / "trace.json"
    options = ("--accumulation", "2", "--recompute", "full", "--loss", "chunked", "--trace", str(trace))
    run("--model", "fsdp/tiny", *SHORT, *options, "--json", str(path), "--html", str(tmp_path / "r.html"))
    result = json.loads(path.read_text())
    assert result["tokens_per_second"] == pytest.approx(2 * 2 * 32 / sum(result["step_seconds"]["all"]))
    assert result["flops"]["hardware_per_token"] > result["flops"]["model_per_token"]
    assert json.loads(trace.read_text())["traceEvents"]
    assert "<svg" in (tmp_path / "r.html").read_text()


def test_two_results_are_compared(kept: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, seed in zip(paths, (0, 1), strict=True):
        path.write_text(json.dumps({**kept, "seed": seed}))
    assert run("--compare", *map(str, paths)) == 0
    assert "differs: seed: 0 → 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("--model", "ddp/tny"), UnknownModelError, "no model is called 'tny'"),
        (("--model", "dpd/tiny"), UnknownFrameworkError, "no framework is called 'dpd'"),
        (("--model", "ddp/tiny", "--sequence", "513"), UsageError, "512 positions"),
        (("--model", "ddp/tiny", "--global-batch", "7", "--nproc", "2"), UsageError, "a batch of 7"),
        (("--model", "ddp/tiny", "--tokens", "none.bin", *SHORT), UsageError, "no tokens: .*No such file"),
        ((), UsageError, "which model"),
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments: tuple[str, ...], kind: type[LjperfError], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        run(*arguments)
    assert raised.value.exit_code == 2


def test_an_explicit_cuda_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoDeviceError, match="sees no GPU"):
        run("--model", "ddp/tiny", "--device", "cuda", *SHORT)


def test_ids_outside_of_the_vocabulary_are_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1 2 3 9999 " * 100)
    with pytest.raises(UsageError, match="token 9999 at position 3"):
        run("--model", "ddp/tiny", "--tokens", str(tmp_path / "t.txt"), *SHORT)


def test_a_loss_that_is_no_number_ends_the_run_with_what_there_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    options = ("--learning-rate", "1e30", "--precision", "fp32", "--warmup", "0", "--steps", "9", "--sequence", "32")
    with pytest.raises(LjperfError, match="ended early: the loss is nan at step 2") as raised:
        run("--model", "ddp/tiny", *options, "--json", str(path))
    assert raised.value.exit_code == 1
    assert "NOT COMPLETE: the loss is nan at step 2" in capsys.readouterr().out
    result = json.loads(path.read_text())
    assert (result["complete"], result["ended"], len(result["loss"]["all"])) == (False, "diverged", 2)


def test_a_full_disk_keeps_nobody_from_reading_the_result(
    kept: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(ReportNotWrittenError, match="cannot be written") as raised:
            _deliver(kept, tmp_path / "r.json", None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.exit_code == 1
    assert "tokens/s" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_partial_result_with_measured_steps_is_exit_code_3(kept: dict[str, Any]) -> None:
    partial = {**kept, "complete": False, "ended": "failed", "failure": "rank 1 was ended by SIGKILL"}
    with pytest.raises(PartialResultError, match="rank 1 was ended") as raised:
        _deliver(partial, None, None)
    assert raised.value.exit_code == 3


def started(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A run that would take hours, past its first measured steps."""
    options = ["--sequence", "32", "--warmup", "0", "--steps", "1000000", "--json", str(path)]
    child = subprocess.Popen(
        [*LJPERF, *arguments, *options],
        env=environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("step 3 "):
            break
    return child


def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path) -> None:
    child = started(tmp_path / "r.json", "--model", "ddp/tiny")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=ENOUGH_S)
    assert child.returncode == 130, err[-2000:]
    assert "NOT COMPLETE: interrupted" in out
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["complete"], result["ended"]) == (False, "interrupted")
    assert len(result["step_seconds"]["all"]) >= 3


@pytest.mark.slow
def test_a_killed_rank_ends_all_and_leaves_a_partial_result(tmp_path: Path) -> None:
    child = started(tmp_path / "r.json", "--model", "ddp/tiny", "--nproc", "2")
    time.sleep(1.5)  # three times the interval at which partial results are saved
    ranks = {_rank_of(pid): pid for pid in _descendants(child.pid) if _rank_of(pid) is not None}
    os.kill(ranks["1"], signal.SIGKILL)
    began = time.monotonic()
    out, err = child.communicate(timeout=ENOUGH_S)
    assert child.returncode == 3, err[-2000:]
    assert time.monotonic() - began < 20
    assert "ended early: rank 1 was ended by SIGKILL" in err
    assert "NOT COMPLETE" in out
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["complete"] is False
    assert result["step_seconds"]["all"]
    assert not [pid for pid in ranks.values() if Path(f"/proc/{pid}/cmdline").exists()]


def _descendants(root: int) -> list[int]:
    children = Path(f"/proc/{root}/task/{root}/children")
    found = [int(pid) for pid in children.read_text().split()]
    return [*found, *(pid for child in found for pid in _descendants(child))]


def _rank_of(pid: int) -> str | None:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((word[5:].decode() for word in variables if word.startswith(b"RANK=")), None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "options", "graphs"),
    [
        (
            "deepspeed/tiny",
            ("--compile", "--compile-backend", "aot_eager", "--recompute", "2", "--accumulation", "2"),
            2,
        ),
        ("fsdp/tiny", ("--compile", "--compile-backend", "aot_eager", "--recompute", "2"), 2),
        ("hf/tiny", ("--zero", "3", "--recompute", "full", "--loss", "chunked"), 0),
    ],
)
def test_two_ranks_train(target: str, options: tuple[str, ...], graphs: int, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    ended = run_alone([*LJPERF, "--model", target, "--nproc", "2", *SHORT, *options, "--json", str(path)])
    result = json.loads(path.read_text())
    assert ended.stdout.startswith("what ")
    assert result["setup"]["world_size"] == 2
    assert result["compile"]["graphs"] <= graphs
    assert result["compile"]["breaks"] == 0
    assert all(loss == pytest.approx(6.24, abs=0.1) for loss in result["loss"]["all"])


def test_fp16_on_a_cpu_is_refused() -> None:
    with pytest.raises(NoDeviceError, match="fp16 needs a GPU"):
        run("--model", "ddp/tiny", "--device", "cpu", "--precision", "fp16", *SHORT)


def test_too_little_memory_is_said_with_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(job: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has …")

    monkeypatch.setattr("ljperf.benchmark.frameworks.prepare", full)
    with pytest.raises(NoMemoryError, match=r"^CUDA out of memory. Tried to allocate 2.00 GiB\.$") as raised:
        run("--model", "ddp/tiny", *SHORT)
    assert str(raised.value.hint).startswith("--recompute auto, a smaller --micro-batch")
