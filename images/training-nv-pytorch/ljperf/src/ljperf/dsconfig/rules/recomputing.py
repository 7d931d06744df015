"""The activation_checkpointing section, which by itself recomputes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ljperf.dsconfig.finding import Finding, pointer_of, warning
from ljperf.dsconfig.reading import Reading
from ljperf.dsconfig.values import is_bool, is_true

SECTION = "activation_checkpointing"


def unread_section(reading: Reading) -> Iterator[Finding]:
    """Something is switched on there, which only a caller of deepspeed.checkpointing reads."""
    on = [name for name, value in reading.section(SECTION).items() if not is_bool(value) or is_true(value)]
    if not on:
        return
    if reading.transformers:
        who, hint = "Transformers does not read it", "use gradient_checkpointing=True in TrainingArguments"
    else:
        who = "it sets options of deepspeed.checkpointing.checkpoint"
        hint = "call deepspeed.checkpointing.configure and checkpoint in the model, or recompute in the model itself"
    yield warning(pointer_of(SECTION), f"this section recomputes nothing by itself: {who}", hint)
