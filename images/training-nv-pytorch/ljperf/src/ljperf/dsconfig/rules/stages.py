"""The ZeRO section against its stage: what is silently ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.dsconfig.keys import sections
from ljperf.dsconfig.reading import ZERO, Reading
from ljperf.dsconfig.values import number_of, stage_of


def stage(reading: Reading) -> Iterator[Finding]:
    """No section, no stage, or a stage of the old format."""
    written = reading.config.get(ZERO)
    pointer = pointer_of(ZERO)
    if written is None and ZERO not in reading.config:
        if reading.transformers:
            yield error("", "Accelerate needs a section zero_optimization, and here is none", 'add {"stage": 3}')
    elif isinstance(written, bool):
        yield warning(pointer, f"the old format: it means stage {int(written)}", f'write {{"stage": {int(written)}}}')
    elif not isinstance(written, Mapping):
        yield error(pointer, "zero_optimization must be a section: { … }", '{"stage": 3}')
    elif "stage" not in written:
        yield warning(pointer, "no stage: it is 0, so ZeRO is off and the section does nothing", 'add "stage": 3')


def stage_3_keys(reading: Reading) -> Iterator[Finding]:
    """Keys that only stage 3 reads, with another stage."""
    if reading.stage == 3 or stage_of(reading.zero.get("stage")) is None:
        return
    for name in reading.zero:
        key = sections()[ZERO].key(name)
        if only_stage_3(name) and key and key.known(reading.version):
            message = f"stage {reading.stage} does not read it; only stage 3 does"
            yield warning(pointer_of(ZERO, name), message, 'remove it, or write "stage": 3')


def only_stage_3(name: str) -> bool:
    """Is it a parameter of partitioned parameters?"""
    key = sections()[ZERO].key(name)
    return key is not None and (
        key.name.startswith("stage3_") or key.name in ("leaf_module", "zero_hpz_partition_size")
    )


def offload(reading: Reading) -> Iterator[Finding]:
    """Offloading that the stage cannot do, or that has nowhere to go."""
    for name in ("offload_param", "offload_optimizer"):
        section = reading.zero.get(name)
        if isinstance(section, Mapping):
            yield from _offload(name, section, reading)


def _offload(name: str, section: Mapping[str, object], reading: Reading) -> Iterator[Finding]:
    pointer, device = pointer_of(ZERO, name), section.get("device", "none")
    needed = 3 if name == "offload_param" else 1
    if device in ("cpu", "nvme") and reading.stage < needed:
        below = f"stage {reading.stage} does not offload; it needs stage {needed}{'' if needed == 3 else ' or more'}"
        yield warning(pointer, below, f'write "stage": {3}, or remove the section')
    if "device" not in section and section:
        yield warning(pointer, "no device: it is none, so nothing is offloaded", 'add "device": "cpu"')
    if device == "nvme" and not section.get("nvme_path"):
        yield error(pointer, "nvme needs nvme_path, and here is none")
    ratio = number_of(section.get("ratio", 1))
    if name == "offload_optimizer" and ratio is not None and 0 <= ratio < 1 and reading.stage != 3:
        yield error(pointer_of(ZERO, name, "ratio"), "a part of the optimizer is offloaded only with stage 3")


def deprecated(reading: Reading) -> Iterator[Finding]:
    """Keys that DeepSpeed itself replaces."""
    for name in reading.zero:
        key = sections()[ZERO].key(name)
        if key and key.instead:
            yield warning(pointer_of(ZERO, name), "deprecated", f"write {key.instead}")
