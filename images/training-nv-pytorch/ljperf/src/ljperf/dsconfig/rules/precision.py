"""Number formats that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.dsconfig.reading import Reading

MODELS_SINCE: Final = (0, 17, 1)  # from here on fp16 and bf16 are pydantic models, which drop "auto"


def both(reading: Reading) -> Iterator[Finding]:
    """fp16 and bf16 at once."""
    if reading.enabled("fp16") and _bf16(reading):
        hint = 'keep bf16 ("fp16": {"enabled": false})'
        yield error(pointer_of("fp16", "enabled"), "fp16 and bf16 are both on: DeepSpeed refuses to start", hint)


def _bf16(reading: Reading) -> bool:
    # The old name counts only where the new one is absent.
    return reading.enabled("bf16" if "bf16" in reading.config else "bfloat16")


def auto_alone(reading: Reading) -> Iterator[Finding]:
    """ "enabled": "auto" without Transformers: on in old versions (any text is true), off in newer ones."""
    if reading.transformers:
        return
    found = [name for name in ("fp16", "bf16") if reading.section(name).get("enabled") == "auto"]
    for name in found:
        pointer = pointer_of(name, "enabled")
        if reading.version >= MODELS_SINCE:
            yield warning(pointer, f'without Transformers "auto" leaves {name} off', "write true or false")
        elif len(found) == 2:
            yield error(pointer, 'without Transformers "auto" is on, for fp16 and bf16 at once', "write true or false")
        else:
            yield warning(pointer, f'without Transformers "auto" turns {name} on', "write true or false")


def apex(reading: Reading) -> Iterator[Finding]:
    """Apex's amp, which ZeRO does not know."""
    if reading.enabled("amp") and reading.stage > 0:
        yield error(pointer_of("amp", "enabled"), f"amp and ZeRO stage {reading.stage} exclude each other", "use bf16")
