"""Transformers' Trainer, as a user calls it; with DeepSpeed if a ZeRO stage or a config is given."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ljperf.benchmark.frameworks.job import GRADIENT_CLIPPING, Job, built, mean
from ljperf.benchmark.steps import Meter
from ljperf.models.building import dtype_of

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True, slots=True)
class TrainerLoop:
    """The Trainer runs; a callback of ours keeps the time."""

    job: Job
    model: nn.Module
    arguments: Any

    def run(self, meter: Meter) -> None:
        """Train. Raises NotFiniteLossError through the Trainer."""
        self.arguments.max_steps = meter.total
        trainer = _trainer(self.job, self.model, self.arguments, meter)
        trainer.train()


def prepare(job: Job) -> TrainerLoop:
    """Make the arguments first: with ZeRO-3 they decide that the model is built in parts."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    if job.config:
        from ljperf.benchmark.frameworks.engine import join

        join(job.place)
    arguments = _arguments(job)
    dtype = dtype_of(job.setup.precision) if job.config else torch.float32
    return TrainerLoop(job, built(job, dtype), arguments)


def _arguments(job: Job) -> Any:
    from transformers import TrainingArguments

    setup, request = job.setup, job.request
    return TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="ljperf-trainer-"),
        per_device_train_batch_size=setup.micro_batch,
        gradient_accumulation_steps=setup.accumulation,
        max_steps=1,
        learning_rate=request.learning_rate,
        lr_scheduler_type="constant",
        max_grad_norm=GRADIENT_CLIPPING,
        weight_decay=0.0,
        optim="adamw_torch_fused" if job.place.kind == "cuda" else "adamw_torch",
        bf16=setup.precision == "bf16",
        fp16=setup.precision == "fp16",
        torch_compile=setup.compiled,
        torch_compile_backend=request.backend if setup.compiled else None,
        deepspeed=dict(job.config) or None,
        use_cpu=job.place.kind == "cpu",
        seed=request.seed,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
    )


def _trainer(job: Job, model: nn.Module, arguments: Any, meter: Meter) -> Any:
    from transformers import Trainer, TrainerCallback

    losses: list[torch.Tensor] = []

    class Timed(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            meter.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            meter.end(mean(losses))
            losses.clear()

    class Listening(Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **more: Any) -> Any:
            result = super().compute_loss(model, inputs, return_outputs, **more)
            losses.append((result[0] if return_outputs else result).detach())
            return result

    trainer = Listening(model=model, args=arguments, train_dataset=_rows(job, meter), callbacks=[Timed()])
    # Else it counts a step's tokens and wants the sum of losses over them, which only Transformers' own losses give.
    trainer.model_accepts_loss_kwargs = False
    return trainer


def _rows(job: Job, meter: Meter) -> Any:
    from torch.utils.data import Dataset

    count = meter.total * job.setup.accumulation * job.setup.micro_batch
    batches = job.batches()
    mine = [row for _ in range(meter.total * job.setup.accumulation) for row in next(batches)]

    class Rows(Dataset[Any]):  # type: ignore[misc]
        # Every rank has rows of its own, whichever the sampler picks.
        def __len__(self) -> int:
            return count * job.place.world_size

        def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
            row = mine[index % count]
            return {"input_ids": row, "labels": row}

    return Rows()
