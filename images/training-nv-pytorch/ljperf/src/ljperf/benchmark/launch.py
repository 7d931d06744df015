"""Ranks here or on several machines: torchrun, DeepSpeed's launcher or Ray starts them; we read what is left.

The ranks are this same command with `--into FOLDER`: there rank 0 keeps its result, and each rank that fails its error.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

from ljperf.benchmark.request import Request
from ljperf.errors import LjperfError

RESULT = "result.json"
GRACE_S = 20  # ranks that ignore SIGTERM get SIGKILL from their launcher within this, or from us after it
KEPT_LINES = 200
PR_SET_PDEATHSIG = 1  # prctl(2)


class RankFailedError(LjperfError):
    """A rank failed, or was killed; the others were ended."""


def torchrun(nproc: int, arguments: Sequence[str], command: str = "benchmark") -> list[str]:
    """So many ranks of one of our commands on this machine."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={nproc}"]
    return [*launcher, "-m", "ljperf", command, *arguments]


def deepspeed(hostfile: Path, nproc: int | None, arguments: Sequence[str]) -> list[str]:
    """Ranks on the machines of a hostfile; `nproc` of them on each, else one for each of its slots."""
    launcher = [sys.executable, "-m", "deepspeed.launcher.runner", "--hostfile", str(hostfile.absolute())]
    count = [f"--num_gpus={nproc}"] if nproc else []
    # Without it each rank gets a --local_rank that is not ours.
    return [*launcher, *count, "--no_local_rank", "--module", "ljperf", "benchmark", *arguments]


def arguments_of(request: Request) -> list[str]:
    """The command line that means this request."""
    words = ["--model", f"{request.framework}/{request.model}"]
    names = {"compiled": "compile", "backend": "compile_backend"}
    for field in fields(request):
        value = getattr(request, field.name)
        option = f"--{names.get(field.name, field.name).replace('_', '-')}"
        if field.name in ("framework", "model") or value is None or value is False:
            continue
        if value is True:
            words.append(option)
        else:
            words += [option, str(value.absolute() if isinstance(value, Path) else value)]
    return words


def wait_for(command: Sequence[str], into: Path, nproc: int, echo: IO[str]) -> dict[str, Any] | None:
    """Run a launcher to its end; the result that rank 0 left in `into`, complete or not; None without one.

    Raises RankFailedError if nothing at all was measured; on KeyboardInterrupt all ranks are ended first.
    """
    child = subprocess.Popen(
        command,
        env=environment_of(nproc),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches us alone, and we end the ranks
        preexec_fn=end_with_parent,
    )
    said: deque[str] = deque(maxlen=KEPT_LINES)
    listener = threading.Thread(target=_listen, args=(child, said, echo), daemon=True)
    listener.start()
    try:
        code = child.wait()
    except BaseException:
        _end(child)
        raise
    listener.join(timeout=2)
    return _outcome(code, said, into)


def _outcome(code: int, said: Iterable[str], into: Path) -> dict[str, Any] | None:
    result = kept(into)
    if code == 0 and result:
        return result
    text = "".join(said)
    # A rank that a signal ended left no word; what the others said of its silence is not the cause.
    cause = _killed(text) or _first_error(into)
    error = cause or RankFailedError(_reason(code, text), hint="its last words are above")
    if result is None:
        raise error
    ended = result["ended"]
    # The launcher interrupts the ranks that are left, often before they miss the one that failed.
    if ended == "well" or (ended == "interrupted" and cause):
        ended = "failed"
    return {**result, "complete": False, "ended": ended, "failure": _described(error)}


def _described(error: LjperfError) -> str:
    return f"{error.location}: {error.message}" if error.location else error.message


def kept(into: Path) -> dict[str, Any] | None:
    """What rank 0 left."""
    try:
        result: dict[str, Any] = json.loads((into / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result


def keep_error(into: Path, rank: int, error: BaseException) -> None:
    """Leave a rank's error for the one who waits. An interrupt is none: it follows from another rank's, or is ours."""
    if isinstance(error, KeyboardInterrupt):
        return
    known = error if isinstance(error, LjperfError) else LjperfError(f"{type(error).__name__}: {error}")
    note = {"message": known.message, "hint": known.hint, "location": known.location, "exit_code": known.exit_code}
    text = json.dumps(note | {"rank": rank, "time": time.time()})
    (into / f"error-{rank}.json").write_text(text, encoding="utf-8")


def _first_error(into: Path) -> LjperfError | None:
    """The earliest: later ones follow from it, as when a collective misses its partner."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in into.glob("error-*.json")]
    if not notes:
        return None
    note = min(notes, key=lambda note: note["time"])
    alike = len({other["message"] for other in notes}) == 1 and len(notes) > 1
    where = note["location"] or (None if alike else f"rank {note['rank']}")
    error = RankFailedError(note["message"], hint=note["hint"], location=where)
    error.exit_code = note["exit_code"]
    return error


def _failures(text: str) -> list[tuple[int, int]]:
    """Ranks and exit codes of torchrun's summary, "rank : 1 (local_rank: 1)" and "exitcode : -9 (pid: 1234)"."""
    found = re.findall(r"^ *rank +: (\d+).*\n *exitcode +: (-?\d+)", text, re.MULTILINE)
    return [(int(rank), int(code)) for rank, code in found]


def _killed(text: str) -> RankFailedError | None:
    """The rank that a signal ended, if it was not the launcher's own to end the rest."""
    own = (-signal.SIGTERM, -signal.SIGINT)
    for rank, code in _failures(text):
        if code < 0 and code not in own:
            hint = "out of host memory? then the kernel's log names it" if code == -signal.SIGKILL else None
            return RankFailedError(f"rank {rank} was ended by {signal.Signals(-code).name}", hint=hint)
    return None


def _reason(code: int, text: str) -> str:
    failed = [f"rank {rank} ended with exit code {status}" for rank, status in _failures(text) if status > 0]
    return failed[0] if failed else f"the launcher ended with exit code {code}"


def _listen(child: subprocess.Popen[str], said: deque[str], echo: IO[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        said.append(line)
        echo.write(line)
        echo.flush()


def _end(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def environment_of(nproc: int) -> dict[str, str]:
    """The environment of so many ranks that share this machine's cores, each line of them shown as it comes."""
    threads = max(1, len(os.sched_getaffinity(0)) // max(1, nproc))
    return {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"} | dict(os.environ)


def end_with_parent() -> None:
    """Let the kernel end this process when its parent ends: no rank outlives its launcher, no launcher the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def through_ray(request: Request, workers: int) -> dict[str, Any]:
    """So many ranks on a Ray cluster, with a GPU each unless the request says cpu. Raises LjperfError without Ray."""
    try:
        import ray
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer
    except ImportError as error:
        raise LjperfError(f"--ray: Ray Train cannot be loaded: {error}", hint="pip install 'ray[train]'") from None
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    scaling = ScalingConfig(num_workers=workers, use_gpu=_on_gpus(ray, request))
    options = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(request).items()}
    trainer = TorchTrainer(_ray_rank, train_loop_config=options, scaling_config=scaling, run_config=RunConfig())
    found: dict[str, Any] = json.loads(trainer.fit().metrics["result"])
    return found


def _on_gpus(ray: Any, request: Request) -> bool:
    return request.device != "cpu" and ray.cluster_resources().get("GPU", 0) > 0


def _ray_rank(options: dict[str, Any]) -> None:
    from ray import train

    from ljperf.benchmark.run import run_rank

    paths = {key: Path(options[key]) for key in ("tokens", "trace", "ds_config") if options[key]}
    result = run_rank(Request(**{**options, **paths}), None)
    # Ray wants a report of every rank; the first one's is kept.
    train.report({"result": json.dumps(result)})
