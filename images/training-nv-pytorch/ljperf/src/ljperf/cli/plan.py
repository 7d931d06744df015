"""`ljperf plan`: peak memory by phases, and how many layers must recompute."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ljperf.errors import LjperfError

if TYPE_CHECKING:
    from ljperf.devices import Device
    from ljperf.memory.recommend import Recommendation
    from ljperf.memory.sweep import Cell
    from ljperf.models.shape import ModelShape
    from ljperf.setup import TrainingSetup

GB = 10**9
FILE = click.Path(path_type=Path, dir_okay=False)


class NoDeviceError(LjperfError):
    """No device was named, and none is here."""


@click.command("plan", epilog="Exit code: 1 if it does not fit (with the number given, or with any).")
@click.option("--model", "target", required=True, metavar="[FRAMEWORK/]MODEL", help="llama3-70b, or fsdp/llama3-8b.")
@click.option("--world-size", type=click.IntRange(1), default=1, show_default=True, help="Ranks in all.")
@click.option("--micro-batch", default=1, show_default=True, help="Sequences per device and forward.")
@click.option("--sequence", type=int, help="Tokens per sequence.  [default: 2048, or the model's maximum]")
@click.option("--accumulation", default=1, show_default=True, help="Forwards per optimizer step.")
@click.option("--zero", type=click.IntRange(0, 3), help="DeepSpeed's stage.  [default: 3; hf: without DeepSpeed]")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), default="bf16", show_default=True)
@click.option("--device", "device_name", help="Such as h20-96g.  [default: the one in this machine]")
@click.option("--headroom", type=click.FloatRange(0, 0.9), default=0.05, show_default=True, help="Part to leave free.")
@click.option("--recompute", default="auto", show_default=True, help="auto, none, full, or a number of first layers.")
@click.option("--zero-init/--no-zero-init", default=True, show_default=True, help="Built under deepspeed.zero.Init?")
@click.option("--leaf/--no-leaf", default=None, help="Blocks are ZeRO-3 leaf modules.  [default: with --compile]")
@click.option(
    "--attention", type=click.Choice(["sdpa", "eager", "flash_attention_2"]), default="sdpa", show_default=True
)
@click.option("--loss", type=click.Choice(["plain", "chunked", "liger"]), default="plain", show_default=True)
@click.option("--compile", "compiled", is_flag=True, help="The decoder blocks are compiled.")
@click.option("--offload-optimizer", is_flag=True, help="Optimizer states are in the host's memory.")
@click.option("--ds-config", type=FILE, help="A DeepSpeed config: its stage, sizes and batch.")
@click.option("--efficiency", type=click.FloatRange(0.01, 1), help="Assumed part of peak FLOP/s.  [default: 0.4]")
@click.option("--explain", is_flag=True, help="Draw memory by part and phase.")
@click.option("--sweep", "axes", multiple=True, metavar="AXIS=N,N", help="A table, such as micro_batch=1,2,4.")
@click.argument("more_axes", nargs=-1, metavar="[AXIS=N,N]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(target: str, device_name: str | None, headroom: float, efficiency: float | None, **options: Any) -> int:
    """Predict the peak memory of one device, and recommend how many of the first layers to recompute."""
    from ljperf.memory.recommend import recommend
    from ljperf.memory.step_time import EFFICIENCY

    shape, setup = _setup(target, options)
    device = _device(device_name)
    how: dict[str, Any] = {
        "headroom": headroom,
        "layers": None if options["recompute"] == "auto" else setup.recompute_layers,
        "efficiency": efficiency or EFFICIENCY,
    }
    if options["axes"] or options["more_axes"]:
        return _sweep(shape, setup, device, how, options)
    answer = recommend(shape, setup, device, **how)
    if options["as_json"]:
        click.echo(json.dumps(document(shape, setup, device, answer), indent=2))
    else:
        click.echo(text(shape, setup, device, answer, explain=options["explain"]))
    return 0 if answer.fits else 1


def _setup(target: str, options: dict[str, Any]) -> tuple[ModelShape, TrainingSetup]:
    """What the benchmark would train with the same options, and what only a plan can ask for."""
    from ljperf.benchmark.request import Request, read_ds_config, setup_of, target_of
    from ljperf.models.catalog import model_named

    framework, model = target_of(target if "/" in target else f"deepspeed/{target}")
    shared = (
        *("micro_batch", "sequence", "accumulation", "zero", "precision"),
        *("compiled", "recompute", "attention", "loss"),
    )
    request = Request(
        framework=framework,
        model=model,
        ds_config=options["ds_config"],
        **{name: options[name] for name in shared},
    )
    shape = model_named(model)
    config = read_ds_config(options["ds_config"])
    setup = setup_of(request, shape, options["world_size"], config)
    leaf = setup.leaf_blocks if options["leaf"] is None else options["leaf"]
    setup = replace(
        setup,
        zero_init=setup.zero_stage < 3 or options["zero_init"],
        leaf_blocks=leaf and setup.zero_stage == 3,
        optimizer_offload=options["offload_optimizer"],
    )
    return shape, (_configured(setup, config, shape) if config else setup)


def _configured(setup: TrainingSetup, config: dict[str, Any], shape: ModelShape) -> TrainingSetup:
    """The sizes that DeepSpeed will really use, and where its config puts the optimizer."""
    from ljperf.dsconfig.derived import effective

    filled = setup.framework == "hf"
    sizes = {size.name: size.transformers if filled else size.plain for size in effective(config, shape.hidden)}
    zero = config.get("zero_optimization")
    zero = zero if isinstance(zero, dict) else {}
    offload = zero.get("offload_optimizer")
    place = offload.get("device", "none") if isinstance(offload, dict) else "none"
    return replace(
        setup,
        reduce_bucket=sizes.get("reduce_bucket_size") or setup.reduce_bucket,
        prefetch_bucket=sizes.get("stage3_prefetch_bucket_size", setup.prefetch_bucket) or 0,
        persistence_threshold=sizes.get("stage3_param_persistence_threshold", setup.persistence_threshold) or 0,
        optimizer_offload=setup.optimizer_offload or place in ("cpu", "nvme"),
        overlap_comm=zero.get("overlap_comm") is True,
    )


def _device(name: str | None) -> Device:
    from ljperf.devices import device_named

    if name is not None:
        return device_named(name)
    try:
        from ljperf.devices import found

        here = found()
    except ImportError:
        here = None
    if here is None:
        raise NoDeviceError("no device in this machine, so nothing to fit into", hint="name one: --device h20-96g")
    return here


def _sweep(
    shape: ModelShape, setup: TrainingSetup, device: Device, how: dict[str, Any], options: dict[str, Any]
) -> int:
    from ljperf.memory.sweep import axes_of, sweep
    from ljperf.report.table import table

    axes = axes_of((*options["axes"], *options["more_axes"]))
    cells = list(sweep(shape, setup, axes, device, **how))
    if options["as_json"]:
        rows = [cell.recommendation and document(shape, cell.setup, device, cell.recommendation) for cell in cells]
        click.echo(json.dumps([row for row in rows if row], indent=2))
    else:
        headers = (*axes, "recompute", "needs GB", "fits", "tokens/s", "peak at")
        click.echo(table(headers, [_row(cell, tuple(axes)) for cell in cells]))
        click.echo(f"\n{device.name}; {_source(cells)}")
    return 0 if any(cell.recommendation and cell.recommendation.fits for cell in cells) else 1


def _row(cell: Cell, axes: tuple[str, ...]) -> tuple[object, ...]:
    answer, values = cell.recommendation, tuple(getattr(cell.setup, axis) for axis in axes)
    if answer is None:
        return (*values, None, None, "no", None, "too few positions")
    fits = ("yes" if answer.sure else "likely") if answer.fits else "no"
    speed = f"{answer.step_time.tokens_per_second:.0f}" if answer.step_time else None
    needed = f"{answer.needed_bytes / GB:.1f}"
    return (*values, f"{answer.k} of {answer.layers}", needed, fits, speed, answer.peak.highest.name)


def _source(cells: list[Cell]) -> str:
    known = next((cell.recommendation for cell in cells if cell.recommendation), None)
    return f"constants: {known.calibration.source}" if known else "nothing can be trained"


def text(shape: ModelShape, setup: TrainingSetup, device: Device, answer: Recommendation, *, explain: bool) -> str:
    """The answer for people: what to do, why, how sure, how fast."""
    from ljperf.memory.drawing import bars

    low, high = answer.low_bytes / GB, answer.high_bytes / GB
    lines = [
        f"{shape.name} on {setup.world_size} × {device.name}: {_how(setup)}",
        f"recompute the first {answer.k} of {answer.layers} layers: {_verdict(answer)}",
        f"  needs {answer.needed_bytes / GB:.1f} GB ({low:.1f} to {high:.1f}) of {answer.available_bytes / GB:.1f} GB:"
        f" tensors {answer.peak.bytes / GB:.1f} GB, allocator × {answer.calibration.reserved_ratio:g},"
        f" context and communicator {answer.calibration.context_bytes / GB:.1f} GB",
        f"  {answer.why}",
        *_time(answer),
        *(f"  {note}" for note in notes(answer)),
        *(f"  instead: {remedy}" for remedy in answer.remedies),
    ]
    return "\n".join([*lines, "", bars(answer.peak)] if explain else lines)


def _how(setup: TrainingSetup) -> str:
    stage = f", ZeRO-{setup.zero_stage}" if setup.framework in ("deepspeed", "hf") and setup.zero_stage else ""
    compiled = ", compiled" if setup.compiled else ""
    batch = f"micro batch {setup.micro_batch}, sequence {setup.sequence}"
    return f"{setup.framework}{stage}, {setup.precision}, {setup.attention}, {setup.loss} loss{compiled}, {batch}"


def _verdict(answer: Recommendation) -> str:
    if not answer.fits:
        return "does not fit"
    if answer.sure:
        return "fits"
    safe = "no number does" if answer.safe_k is None else f"{answer.safe_k} would"
    return f"fits, though not at the high end of the band ({safe})"


def _time(answer: Recommendation) -> list[str]:
    time = answer.step_time
    if time is None:
        return ["  no step time: this device's peak FLOP/s for that precision are unknown"]
    return [
        f"  modelled, not measured: a step of {time.seconds:.2f} s, {time.tokens_per_second:.0f} tokens/s per device,"
        f" MFU {time.mfu:.0%}, if the hardware runs at {time.efficiency:.0%} of its dense peak"
    ]


def notes(answer: Recommendation) -> tuple[str, ...]:
    """What limits the answer's accuracy."""
    constants = answer.calibration
    told = [f"constants: {constants.source}"]
    if not constants.measured:
        told.append(f"so the band is ±{constants.band:.0%}; `ljperf calibrate` on the device narrows it")
    if not answer.peak.exact:
        told.append(f"activations are an estimate ({answer.peak.how})")
    return tuple(told)


def document(shape: ModelShape, setup: TrainingSetup, device: Device, answer: Recommendation) -> dict[str, Any]:
    """The answer for programs: bytes, seconds, and every phase with its parts."""
    from dataclasses import asdict

    return {
        "model": shape.name,
        "device": device.name,
        "setup": asdict(setup.recomputing(answer.k)),
        "recompute_layers": answer.k,
        "layers": answer.layers,
        "fits": answer.fits,
        "fits_at_high_end": answer.sure,
        "recompute_layers_at_high_end": answer.safe_k,
        "why": answer.why,
        "remedies": list(answer.remedies),
        "bytes": {
            "needed": answer.needed_bytes,
            "low": answer.low_bytes,
            "high": answer.high_bytes,
            "available": answer.available_bytes,
            "tensors": answer.peak.bytes,
        },
        "activations": {"exact": answer.peak.exact, "how": answer.peak.how},
        "phases": [
            {"name": phase.name, "bytes": phase.bytes, "parts": dict(phase.parts)} for phase in answer.peak.phases
        ],
        "step_time_model": asdict(answer.step_time) if answer.step_time else None,
        "calibration": asdict(answer.calibration),
    }
