"""Which trainings show what: the planner's grid, the gains. The smallest form, for a CPU, is beside the real one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ljperf.benchmark.request import Request, setup_of
from ljperf.gpu.trials import Trial
from ljperf.memory.phases import peak_of
from ljperf.models.catalog import model_named
from ljperf.setup import TrainingSetup

USABLE: Final = 0.93  # of the device's memory: context, workspaces and fragments have the rest
LARGEST_FIRST: Final = ("llama3-8b", "qwen2.5-7b", "llama3.2-1b")


@dataclass(frozen=True, slots=True)
class Case:
    """A request with a name, and whether to time it or only to weigh it."""

    name: str
    request: Request

    @property
    def setup(self) -> TrainingSetup:
        """As one rank will train it; `auto` counts as no recomputation."""
        return setup_of(self.request, model_named(self.request.model), world_size=1)

    @property
    def predicted_bytes(self) -> int:
        """The planner's peak."""
        return peak_of(model_named(self.request.model), self.setup).bytes

    @property
    def trial(self) -> Trial:
        """The process that runs it."""
        asked, recommended = self.request, self.request.recompute == "auto"
        model = f"{asked.framework}/{asked.model}"
        predicted = None if recommended else self.predicted_bytes
        return Trial(self.name, model, tuple(_options(asked)), recommended, predicted)


def _options(asked: Request) -> Iterable[str]:
    yield from ("--micro-batch", str(asked.micro_batch), "--steps", str(asked.steps), "--warmup", str(asked.warmup))
    yield from ("--recompute", asked.recompute, "--precision", asked.precision, "--device", asked.device)
    yield from ("--attention", asked.attention, "--loss", asked.loss)
    if asked.sequence is not None:
        yield from ("--sequence", str(asked.sequence))
    if asked.zero is not None:
        yield from ("--zero", str(asked.zero))
    if asked.compiled:
        yield "--compile"


SMALL: Final = Request("deepspeed", "llama3.2-1b", steps=2, warmup=2, device="cuda")

GRID: Final = (
    Case("zero3-b1-s2048", replace(SMALL, sequence=2048)),
    Case("zero3-b1-s4096-full", replace(SMALL, sequence=4096, recompute="full")),
    Case("zero3-b1-s8192-8", replace(SMALL, sequence=8192, recompute="8")),
    Case("zero3-b4-s2048", replace(SMALL, micro_batch=4, sequence=2048)),
    Case("zero3-b2-s4096-4", replace(SMALL, micro_batch=2, sequence=4096, recompute="4")),
    Case("zero3-b2-s4096-chunked", replace(SMALL, micro_batch=2, sequence=4096, loss="chunked")),
    Case("zero3-b1-s2048-eager", replace(SMALL, sequence=2048, attention="eager")),
    Case("zero2-b1-s4096", replace(SMALL, zero=2, sequence=4096)),
    Case("zero1-b2-s2048", replace(SMALL, zero=1, micro_batch=2, sequence=2048)),
    Case("ddp-b1-s2048", replace(SMALL, framework="ddp", sequence=2048)),
    Case("ddp-b2-s4096-full", replace(SMALL, framework="ddp", micro_batch=2, sequence=4096, recompute="full")),
    Case("fsdp-b1-s4096", replace(SMALL, framework="fsdp", sequence=4096)),
    Case("fsdp-b2-s4096-8", replace(SMALL, framework="fsdp", micro_batch=2, sequence=4096, recompute="8")),
    Case("hf-b1-s2048", replace(SMALL, framework="hf", sequence=2048)),
    # Recommended ones last: they run alone. The second needs recomputation on anything up to 141 GB.
    Case("zero3-b4-s4096-auto", replace(SMALL, micro_batch=4, sequence=4096, recompute="auto")),
    Case(
        "zero3-b16-s4096-chunked-auto", replace(SMALL, micro_batch=16, sequence=4096, loss="chunked", recompute="auto")
    ),
)

TINY: Final = Request("ddp", "tiny", sequence=32, steps=2, warmup=1, device="cpu")

SMOKE_GRID: Final = (Case("ddp-b2-s32-2", replace(TINY, micro_batch=2, recompute="2")),)

SMOKE_GAINS: Final = (
    Case("tiny-full", replace(TINY, recompute="full")),
    Case("tiny-auto", replace(TINY, recompute="0")),
)


def fitting(cases: Sequence[Case], memory_bytes: int | None) -> tuple[Case, ...]:
    """Those whose predicted peak the device holds; with `auto`, those that full recomputation fits."""
    if memory_bytes is None:
        return tuple(cases)
    return tuple(case for case in cases if _least(case) <= memory_bytes * USABLE)


def _least(case: Case) -> int:
    auto = case.request.recompute == "auto"
    return (
        replace(case, request=replace(case.request, recompute="full")).predicted_bytes if auto else case.predicted_bytes
    )


def gains(memory_bytes: int | None) -> tuple[Case, ...]:
    """Full recomputation against the planned one, on a model with room to choose and on the largest that fits; and
    the largest compiled, with the same recomputation, so that only compiling differs."""
    if memory_bytes is None:
        return SMOKE_GAINS
    timed = replace(SMALL, steps=8, warmup=3)
    roomy = replace(timed, micro_batch=4, sequence=4096)
    found = [Case("1b-full", replace(roomy, recompute="full")), Case("1b-auto", replace(roomy, recompute="auto"))]
    model = largest(memory_bytes)
    if model:
        large = replace(timed, model=model, sequence=2048)
        found += [
            Case("largest-full", replace(large, recompute="full")),
            Case("largest-compiled", replace(large, recompute="full", compiled=True)),
            Case("largest-auto", replace(large, recompute="auto")),
        ]
    return tuple(found)


def largest(memory_bytes: int) -> str | None:
    """The largest model that trains on this device with every layer recomputed; None if none does."""
    for model in LARGEST_FIRST:
        case = Case(model, replace(SMALL, model=model, sequence=2048, recompute="full"))
        if fitting([case], memory_bytes):
            return model
    return None
