"""Sizes of ZeRO's buffers: a number pins what DeepSpeed could have had from the model's hidden size."""

from __future__ import annotations

from collections.abc import Iterator

from ljperf.dsconfig.derived import PREFETCH, REDUCE, SIZES, derived, used_by_deepspeed, written_as
from ljperf.dsconfig.finding import Finding, pointer_of, warning
from ljperf.dsconfig.keys import default_of, sections
from ljperf.dsconfig.reading import ZERO, Reading

LARGE_REDUCE = 500_000_000  # elements: 1 GB in bf16, DeepSpeed's default


def fixed_prefetch(reading: Reading) -> Iterator[Finding]:
    """Stage 3: the prefetch bucket as a number; the image's rule is to leave it out, or "auto"."""
    used = used_by_deepspeed(reading.zero, PREFETCH)
    written = written_as(reading.zero, PREFETCH)
    if reading.stage != 3 or written in (None, "auto") or used is None:
        return  # a refused value is another rule's
    if reading.hidden and used == derived(PREFETCH, reading.hidden):
        return  # what "auto" gives; so it arrives from Transformers
    pointer = pointer_of(ZERO, _name(reading))
    if used == 0:
        yield warning(pointer, "0 turns prefetching off: every layer waits for its own parameters", _advice(reading))
    else:
        yield warning(pointer, f"the prefetch bucket is fixed at {used:,} elements{_beside(reading)}", _advice(reading))


def _name(reading: Reading) -> str:
    key = sections()[ZERO].key(PREFETCH)
    return key.also if key and key.also and key.also in reading.zero else PREFETCH


def _beside(reading: Reading) -> str:
    """The model's own size, for comparison; whole parameters are fetched, so the number is only a lower bound."""
    if reading.hidden is None:
        return "; DeepSpeed fetches whole parameters until it is reached"
    return f", where hidden size {reading.hidden:,} gives {derived(PREFETCH, reading.hidden):,}"


def _advice(reading: Reading) -> str:
    default = default_of(ZERO, PREFETCH)
    if reading.transformers:
        return f'"auto" takes 0.9 x hidden size squared; without the key it is {default:,}'
    return f'leave the key out ({default:,}), or train through Transformers with "auto" (0.9 x hidden size squared)'


def auto_alone(reading: Reading) -> Iterator[Finding]:
    """ "auto" sizes without Transformers are DeepSpeed's defaults, which do not know the model."""
    if reading.transformers or reading.stage == 0:
        return
    for name in SIZES if reading.stage == 3 else (REDUCE,):
        if reading.zero.get(name) == "auto":
            yield warning(pointer_of(ZERO, name), _dropped(name, reading.hidden), _numbers(name, reading.hidden))


def _dropped(name: str, hidden: int | None) -> str:
    would = f", not {derived(name, hidden):,}" if hidden else ""
    buffer = ": a buffer of 1 GB in bf16" if name == REDUCE else ""
    return f'without Transformers DeepSpeed drops "auto" and uses {default_of(ZERO, name):,} elements{would}{buffer}'


def _numbers(name: str, hidden: int | None) -> str | None:
    if name == PREFETCH:
        return None  # the image's rule: no number here
    return f"write {derived(name, hidden):,} without the commas" if hidden else "give --hidden-size to see the number"


def default_reduce_bucket(reading: Reading) -> Iterator[Finding]:
    """Under Transformers, a missing reduce bucket is DeepSpeed's 5e8 elements; "auto" would fit the model."""
    if not reading.transformers or reading.stage == 0 or REDUCE in reading.zero:
        return
    message = f"{REDUCE} is missing, so it is {LARGE_REDUCE:,} elements: a buffer of 1 GB in bf16"
    yield warning(pointer_of(ZERO), message, '"auto" takes hidden size squared, far less for most models')
