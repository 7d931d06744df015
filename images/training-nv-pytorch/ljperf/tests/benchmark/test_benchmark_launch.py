from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import click
import pytest
from ljperf.benchmark import launch
from ljperf.benchmark.launch import RankFailedError, arguments_of, deepspeed, keep_error, torchrun, wait_for
from ljperf.benchmark.request import Request
from ljperf.cli.benchmark import command
from ljperf.errors import UsageError

# What torchrun 2.13 prints when its second rank is killed.
KILLED = """
Root Cause (first observed failure):
[0]:
  time      : 2026-12-02_17:12:09
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 20946)
  error_file: <N/A>
"""


def parsed(arguments: list[str]) -> dict[str, object]:
    return command.make_context("benchmark", arguments, resilient_parsing=False).params


def test_a_request_and_its_command_line_say_the_same() -> None:
    request = Request(
        "hf",
        "llama3-8b",
        micro_batch=2,
        sequence=100,
        zero=2,
        precision="fp32",
        compiled=True,
        backend="aot_eager",
        recompute="auto",
        loss="chunked",
        warmup=0,
        learning_rate=0.5,
        headroom=0.1,
        tokens=Path("/a/t.bin"),
    )
    params = parsed(arguments_of(request))
    assert params.pop("target") == "hf/llama3-8b"
    names = ("framework", "model")
    assert {name: params[name] for name in Request.__slots__ if name not in names} == {
        name: getattr(request, name) for name in Request.__slots__ if name not in names
    }


def test_paths_are_whole_because_ranks_may_start_elsewhere() -> None:
    words = arguments_of(Request("ddp", "tiny", tokens=Path("t.bin")))
    assert words[words.index("--tokens") + 1] == str(Path.cwd() / "t.bin")


def test_launchers_start_this_same_command() -> None:
    assert torchrun(2, ["--x"])[1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *("-m", "ljperf", "benchmark", "--x"),
    ]
    assert deepspeed(Path("/h"), 4, ["--x"])[1:] == [
        *("-m", "deepspeed.launcher.runner", "--hostfile", "/h", "--num_gpus=4"),
        *("--no_local_rank", "--module", "ljperf", "benchmark", "--x"),
    ]


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_rank_that_was_killed_before_any_step_is_named(tmp_path: Path) -> None:
    echo = io.StringIO()
    with pytest.raises(RankFailedError, match=r"^rank 1 was ended by SIGKILL$"):
        wait_for(program(f"print({KILLED!r}); raise SystemExit(1)"), tmp_path, 2, echo)
    assert "Root Cause" in echo.getvalue()


def test_the_first_error_counts_and_keeps_its_exit_code(tmp_path: Path) -> None:
    keep_error(tmp_path, 1, UsageError("token 9", hint="other tokens", location="t.bin"))
    time.sleep(0.01)
    keep_error(tmp_path, 0, ConnectionError("peer is gone"))
    with pytest.raises(RankFailedError, match=r"^token 9$") as raised:
        wait_for(program("raise SystemExit(1)"), tmp_path, 2, io.StringIO())
    assert (raised.value.exit_code, raised.value.hint, raised.value.location) == (2, "other tokens", "t.bin")


def test_an_unexpected_error_names_its_kind_and_rank(tmp_path: Path) -> None:
    keep_error(tmp_path, 3, MemoryError("no room"))
    with pytest.raises(RankFailedError, match=r"^MemoryError: no room$") as raised:
        wait_for(program("raise SystemExit(1)"), tmp_path, 4, io.StringIO())
    assert raised.value.location == "rank 3"


def test_what_was_measured_before_a_failure_is_kept_and_marked(tmp_path: Path) -> None:
    (tmp_path / launch.RESULT).write_text('{"complete": false, "ended": "failed", "failure": "not ended"}')
    result = wait_for(program(f"print({KILLED!r}); raise SystemExit(1)"), tmp_path, 2, io.StringIO())
    assert result == {"complete": False, "ended": "failed", "failure": "rank 1 was ended by SIGKILL"}


def test_a_launcher_that_says_nothing_is_known_by_its_exit_code(tmp_path: Path) -> None:
    with pytest.raises(RankFailedError, match="the launcher ended with exit code 7"):
        wait_for(program("raise SystemExit(7)"), tmp_path, 2, io.StringIO())


def test_without_ray_the_option_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Exception, match="Ray Train cannot be loaded"):
        launch.through_ray(Request("ddp", "tiny"), 2)


def test_every_choice_is_refused_by_click_when_unknown() -> None:
    for option in ("--precision", "--attention", "--loss", "--device", "--zero"):
        with pytest.raises(click.BadParameter):
            parsed(["--model", "ddp/tiny", option, "none-such"])


def test_a_killed_rank_is_the_cause_of_what_the_others_say(tmp_path: Path) -> None:
    keep_error(tmp_path, 0, ConnectionError("peer is gone"))
    also = KILLED.replace("rank      : 1", "rank      : 0").replace("exitcode  : -9", "exitcode  : 1")
    with pytest.raises(RankFailedError, match="rank 1 was ended by SIGKILL"):
        wait_for(program(f"print({also + KILLED!r}); raise SystemExit(1)"), tmp_path, 2, io.StringIO())


def test_ranks_that_the_launcher_ended_are_not_the_cause(tmp_path: Path) -> None:
    ended = KILLED.replace("exitcode  : -9", "exitcode  : -15")
    failed = KILLED.replace("rank      : 1", "rank      : 0").replace("exitcode  : -9", "exitcode  : 1")
    with pytest.raises(RankFailedError, match="rank 0 ended with exit code 1"):
        wait_for(program(f"print({ended + failed!r}); raise SystemExit(1)"), tmp_path, 2, io.StringIO())


INTERRUPTED = '{"complete": false, "ended": "interrupted", "failure": "interrupted"}'


def test_a_rank_that_the_launcher_interrupted_does_not_hide_the_killed_one(tmp_path: Path) -> None:
    """It depends on the moment: rank 0 misses its partner, or is interrupted by the launcher before that."""
    (tmp_path / launch.RESULT).write_text(INTERRUPTED)
    keep_error(tmp_path, 0, KeyboardInterrupt())
    result = wait_for(program(f"print({KILLED!r}); raise SystemExit(1)"), tmp_path, 2, io.StringIO())
    assert result == {"complete": False, "ended": "failed", "failure": "rank 1 was ended by SIGKILL"}


def test_a_rank_that_the_launcher_interrupted_does_not_hide_the_failed_one(tmp_path: Path) -> None:
    (tmp_path / launch.RESULT).write_text(INTERRUPTED)
    keep_error(tmp_path, 0, KeyboardInterrupt())
    time.sleep(0.01)
    keep_error(tmp_path, 1, MemoryError("no room"))
    result = wait_for(program("raise SystemExit(1)"), tmp_path, 2, io.StringIO())
    assert result == {"complete": False, "ended": "failed", "failure": "rank 1: MemoryError: no room"}


def test_a_launcher_that_was_itself_interrupted_leaves_an_interrupted_run(tmp_path: Path) -> None:
    (tmp_path / launch.RESULT).write_text(INTERRUPTED)
    keep_error(tmp_path, 0, KeyboardInterrupt())
    result = wait_for(program("raise SystemExit(1)"), tmp_path, 2, io.StringIO())
    assert result is not None
    assert (result["complete"], result["ended"]) == (False, "interrupted")
