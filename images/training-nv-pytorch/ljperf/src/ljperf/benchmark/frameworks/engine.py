"""DeepSpeed, with its own engine."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ljperf.benchmark.frameworks.job import Job, StepLoop, built, compile_each, mean
from ljperf.benchmark.place import Place
from ljperf.models.building import dtype_of

if TYPE_CHECKING:
    import torch


def prepare(job: Job) -> StepLoop:
    """Build the model (under ZeRO-3 already in parts), compile if asked, and hand it to DeepSpeed."""
    import deepspeed

    join(job.place)
    # zero.Init replaces tensor constructors; Dynamo compares their signatures when it is imported, so before.
    importlib.import_module("torch._dynamo")
    config = dict(job.config)
    inside = deepspeed.zero.Init(config_dict_or_path=config) if job.setup.zero_stage == 3 else contextlib.nullcontext()
    model = built(job, dtype_of(job.setup.precision), inside)
    compile_each(model, job)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    return StepLoop(_stepper(engine), job.batches(), job.setup.accumulation, job.place.device)


def join(place: Place) -> None:
    """Let DeepSpeed join our group, say only what is wrong, and on CPU talk through gloo.

    Its own communicator over shared memory would be compiled at first use: half a minute, and there may be no compiler.
    """
    import deepspeed
    from deepspeed.utils import logger

    comm: Any = importlib.import_module("deepspeed.comm.torch")  # as an attribute, this name is PyTorch itself

    logger.setLevel(logging.WARNING)
    if place.kind == "cpu" and hasattr(comm, "build_shm_op"):
        comm.build_shm_op = lambda: None
    # Else zero.Init, which may come first, believes that it is alone.
    deepspeed.init_distributed(dist_backend="nccl" if place.kind == "cuda" else "gloo", auto_mpi_discovery=False)


def _stepper(engine: Any) -> Any:
    def step(batches: Sequence[torch.Tensor]) -> float:
        losses = []
        for ids in batches:
            loss = engine(input_ids=ids, labels=ids, use_cache=False)["loss"]
            engine.backward(loss)
            engine.step()  # DeepSpeed counts: only the last of an accumulation steps
            losses.append(loss.detach())
        return mean(losses)

    return step
