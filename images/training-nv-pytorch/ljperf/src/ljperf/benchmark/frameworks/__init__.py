"""How each framework trains: one module each, with `prepare(job) -> Loop`.

In: a `Job`. Out: a loop that drives a `Meter`. A framework is imported when it is prepared; none knows another.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ljperf.benchmark.frameworks.job import Job, Loop
    from ljperf.setup import Framework

MODULES: Final[dict[Framework, str]] = {"deepspeed": "engine", "fsdp": "sharded", "ddp": "parallel", "hf": "trainer"}


def prepare(job: Job) -> Loop:
    """Build the model in the job's framework."""
    module = import_module(f"{__name__}.{MODULES[job.setup.framework]}")
    loop: Loop = module.prepare(job)
    return loop
