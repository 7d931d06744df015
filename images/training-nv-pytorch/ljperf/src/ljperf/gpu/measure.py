"""All parts in their order, within the time; after each, the results are on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ljperf.ablation.commands import Measurement
from ljperf.ablation.measure import Outcome, measure
from ljperf.ablation.runs import reason_of, start
from ljperf.ablation.steps import Asked
from ljperf.errors import LjperfError
from ljperf.gpu.cases import GRID, SMOKE_GRID, Case, fitting, gains
from ljperf.gpu.clock import Clock, Share
from ljperf.gpu.machine import Machine
from ljperf.gpu.pool import Pool
from ljperf.gpu.report import Findings, document_of, markdown_of
from ljperf.gpu.trials import Ended, this_program
from ljperf.gpu.verdicts import Error, verdicts
from ljperf.memory.phases import peak_of
from ljperf.models.catalog import model_named
from ljperf.report.files import write_whole
from ljperf.setup import TrainingSetup

SHARES: Final = {"grid": 3.0, "gains": 4.0, "ablation": 2.5, "calibration": 1.0}
AT_ONCE: Final = 4  # more processes would wait for each other's imports on 16 cores
REPEATS: Final = 3
RUN_S: Final = 30.0  # of a small model: import, build, a few steps


@dataclass(slots=True)
class Session:
    """One run of the whole proof."""

    machine: Machine
    out: Path
    clock: Clock
    program: tuple[str, ...] = field(default_factory=this_program)
    say: Callable[[str], None] = lambda _: None
    found: Findings = field(init=False)

    def __post_init__(self) -> None:
        self.found = Findings(self.machine, self.clock.limit_s, 0.0, (), (), (), None, "", ())

    def run(self, runs: Path) -> Findings:
        """Everything; an interruption leaves what was found until then, and is raised again."""
        parts: tuple[tuple[str, Callable[[Share, Path], None]], ...] = (
            ("grid", self.grid),
            ("gains", self.gains),
            ("ablation", self.ablation),
            # Last: the planner is judged as it is shipped, before anything was measured on this device.
            ("calibration", self.calibration),
        )
        for index, (name, part) in enumerate(parts):
            weights = [SHARES[later] for later, _ in parts[index:]]
            share = self.clock.share(weights[0], sum(weights))
            self.say(f"{name}: up to {share.left_s:.0f} s")
            part(share, runs)
            self.keep()
        return self.found

    def grid(self, share: Share, runs: Path) -> None:
        """Does each configuration take what the planner said?"""
        cases = self._fitting("grid", GRID if self.machine.is_gpu else SMOKE_GRID)
        pool = Pool(runs, self.program, self._capacity(), AT_ONCE if self.machine.is_gpu else 1, RUN_S, self.say)
        done = pool.run([case.trial for case in cases], share)
        self.found = replace(self.found, grid=done, errors=self._errors(done))

    def gains(self, share: Share, runs: Path) -> None:
        """What do recomputing less and compiling gain? One after the other: these are timed."""
        pool = Pool(runs, self.program, expected_s=RUN_S, say=self.say)
        done = pool.run([case.trial for case in gains(self.machine.memory_bytes)], share)
        self.found = replace(self.found, gains=done, errors=(*self.found.errors, *self._errors(done)))

    def ablation(self, share: Share, runs: Path) -> None:
        """Step by step, through the command that users have; as many repeats as there is time for."""
        asked, measurement = _ablation(self.machine.is_gpu, self.program, share.left_s)
        each = self._slowest() * len(asked.names)
        repeats = min(REPEATS if self.machine.is_gpu else 1, int(share.left_s // each))
        if repeats < 1:
            self._leave_out(f"ablation: {share.left_s:.0f} s are left, and a round takes about {each:.0f} s")
            return
        outcome = measure(asked, measurement, repeats, runs / "ablation", progress=self.say)
        self._keep_ablation(outcome)

    def calibration(self, share: Share, runs: Path) -> None:
        """The planner's two constants of this device, as a file to ship; continued by hand if the time is over."""
        if not self.machine.is_gpu:
            return
        if not share.fits(RUN_S):
            self._leave_out(f"calibration: {share.left_s:.0f} s are left")
            return
        log = runs / "calibrate.log"
        command = [*self.program, "calibrate", "--into", str(self.out)]
        code = start(command, dict(os.environ), log, share.left_s)
        if code:
            self._leave_out(f"calibration: {reason_of(code, log)}")
        self.found = replace(self.found, calibration=log.read_text(encoding="utf-8", errors="replace").strip())

    def keep(self) -> None:
        """Count anew, and write both files."""
        named = {one.trial.name: one for one in self.found.gains}
        decided = verdicts(self.found.errors, self.found.grid, named)
        self.found = replace(self.found, spent_s=self.clock.spent_s, verdicts=decided)
        self.out.mkdir(parents=True, exist_ok=True)
        write_whole(self.out / "results.json", json.dumps(document_of(self.found), indent=1) + "\n")
        write_whole(self.out / "results.md", markdown_of(self.found))

    def _keep_ablation(self, outcome: Outcome) -> None:
        self.found = replace(self.found, ablation=outcome.document, ablation_text=outcome.text)
        self.out.mkdir(parents=True, exist_ok=True)
        write_whole(self.out / "ablation.html", outcome.page)
        if outcome.interrupted:
            raise KeyboardInterrupt

    def _fitting(self, part: str, cases: Sequence[Case]) -> tuple[Case, ...]:
        chosen = fitting(cases, self.machine.memory_bytes)
        for case in cases:
            if case not in chosen:
                self._leave_out(f"{part}: {case.name} is predicted to need more than this device has")
        return chosen

    def _errors(self, done: Iterable[Ended]) -> tuple[Error, ...]:
        """Predicted against measured, for the runs that the planner has an answer for."""
        found: list[Error] = []
        for one in done:
            try:
                error = error_of(one)
            except LjperfError as unknown:
                self._leave_out(f"planner: {one.trial.name}: {unknown}")
            else:
                found += [error] if error else []
        return tuple(found)

    def _leave_out(self, why: str) -> None:
        self.say(why)
        self.found = replace(self.found, left_out=(*self.found.left_out, why))

    def _capacity(self) -> int | None:
        return None if self.machine.memory_bytes is None else int(self.machine.memory_bytes * 0.9)

    def _slowest(self) -> float:
        """Of the small model's runs, alone on the device."""
        small = [one.wall_s for one in self.found.gains if one.result and not one.trial.name.startswith("largest")]
        return max(small, default=RUN_S)


def error_of(one: Ended) -> Error | None:
    """Predicted against measured, from the setup that the run itself wrote down; None where no memory was measured.

    Raises LjperfError where the planner knows no answer.
    """
    if one.result is None or not one.allocated:
        return None
    setup = TrainingSetup(**one.result["setup"])
    predicted = peak_of(model_named(one.result["model"]), setup).bytes
    return Error(one.trial.name, predicted, one.allocated)


def _ablation(gpu: bool, program: tuple[str, ...], timeout_s: float) -> tuple[Asked, Measurement]:
    if gpu:
        options: dict[str, Any] = {"--micro-batch": 4, "--sequence": 4096, "--steps": 8, "--warmup": 3}
        asked, model = Asked(("base", "compile", "checkpoint")), "deepspeed/llama3.2-1b"
    else:
        options = {"--sequence": 32, "--steps": 2, "--warmup": 1, "--device": "cpu"}
        asked, model = Asked(("base", "checkpoint"), recompute="1"), "ddp/tiny"
    words = tuple(str(word) for pair in options.items() for word in pair)
    return asked, Measurement(model, words, program, timeout_s=timeout_s)
