"""A result for people: a table of text, and a page with its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ljperf.report.svg import lines, page
from ljperf.report.table import table

Row = tuple[str, str]


def text_of(result: Mapping[str, Any]) -> str:
    """The table, and under it what a reader must know about it."""
    rows = [*_setup_rows(result), *_speed_rows(result), *_memory_rows(result), *_training_rows(result)]
    return "\n".join([table(("what", "value"), rows), *_remarks(result)])


def _setup_rows(result: Mapping[str, Any]) -> list[Row]:
    setup, device = result["setup"], result["device"]
    batch = setup["micro_batch"] * setup["accumulation"] * setup["world_size"]
    zero = f", ZeRO-{setup['zero_stage']}" if setup["zero_stage"] else ""
    return [
        ("model", f"{result['model']} ({setup['framework']}{zero}, {setup['precision']})"),
        ("devices", f"{setup['world_size']} × {device['name']}"),
        ("batch", f"{batch} × {setup['sequence']} tokens ({setup['micro_batch']} a device and forward)"),
        ("attention, loss", f"{setup['attention']}, {setup['loss']}"),
        ("compiled", _compiled(setup, result["compile"])),
        ("recomputed layers", str(setup["recompute_layers"])),
    ]


def _compiled(setup: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    if not setup["compiled"]:
        return "no"
    if not made["graphs"]:
        return "asked for, but nothing was"
    return "yes" if made.get("kernels", 1) else "traced only: no kernel was generated"  # older results do not say


def _speed_rows(result: Mapping[str, Any]) -> list[Row]:
    step = result["step_seconds"]
    return [
        ("tokens/s", _number(result["tokens_per_second"], ",.0f")),
        ("tokens/s a device", _number(result["tokens_per_second_per_device"], ",.0f")),
        ("step median", _number(step["median"], ".4f", " s")),
        ("step p95", _number(step["p95"], ".4f", " s")),
        ("MFU", _share(result["mfu"])),
        ("HFU", _share(result["hfu"])),
    ]


def _memory_rows(result: Mapping[str, Any]) -> list[Row]:
    memory = result["memory"]
    if memory["allocated"] is None:
        return [("peak resident memory", _gib(memory["host"]))]
    return [("peak allocated", _gib(memory["allocated"])), ("peak reserved", _gib(memory["reserved"]))]


def _training_rows(result: Mapping[str, Any]) -> list[Row]:
    loss, compiled = result["loss"], result["compile"]
    return [
        ("loss first, last", f"{_number(loss['first'], '.4f')}, {_number(loss['last'], '.4f')}"),
        ("graphs, breaks", f"{compiled['graphs']}, {compiled['breaks']}"),
    ]


def _remarks(result: Mapping[str, Any]) -> list[str]:
    steps = f"{len(result['step_seconds']['all'])} steps measured after {result['warmup']} of warm-up"
    remarks = [f"{steps}, seed {result['seed']}, {result['tokens']} tokens; the slowest rank counts."]
    if result["mfu"] is not None:
        remarks.append(f"MFU and HFU: {result['flops']['convention']}; HFU counts recomputation too.")
    elif result["device"]["kind"] == "cpu":
        remarks.append(
            "MFU and HFU: none on a CPU, whose peak is not in the table; memory is the process's, not tensors'."
        )
    else:
        remarks.append(f"MFU and HFU: none, the peak of {result['device']['name']} is unknown.")
    versions = result["versions"]
    remarks.append(", ".join(f"{name} {versions[name]}" for name in versions))
    remarks += [f"note: {note}" for note in result["notes"]]
    if not result["complete"]:
        remarks.append(f"NOT COMPLETE: {result['failure']}")
    return remarks


def _number(value: Any, form: str, unit: str = "") -> str:
    return format(value, form) + unit if isinstance(value, (int, float)) else "-" if value is None else str(value)


def _share(value: float | None) -> str:
    return _number(value, ".1%")


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / 2**30:.2f} GiB"


def page_of(result: Mapping[str, Any]) -> str:
    """One HTML file without anything to load: step times, losses, the table."""
    loss = [value for value in result["loss"]["all"] if isinstance(value, (int, float))]
    drawings = [
        lines("Step time", {"seconds": result["step_seconds"]["all"]}, "measured step", "s"),
        lines("Loss", {"loss": loss}, "step", "loss"),
    ]
    return page(f"ljperf benchmark: {result['framework']}/{result['model']}", [*drawings, text_of(result)])


def comparison(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Two results side by side with the change from the first to the second, then what else differs between them."""
    rows = [_compared(name, path, form, first, second) for name, path, form in COMPARED]
    shown = table(("what", "A", "B", "change"), [row for row in rows if row[1:3] != ("-", "-")])
    return "\n".join([shown, *_differences(first, second)])


COMPARED = (
    ("tokens/s", ("tokens_per_second",), ",.0f"),
    ("tokens/s a device", ("tokens_per_second_per_device",), ",.0f"),
    ("step median (s)", ("step_seconds", "median"), ".4f"),
    ("step p95 (s)", ("step_seconds", "p95"), ".4f"),
    ("MFU (%)", ("mfu",), ".1%"),
    ("HFU (%)", ("hfu",), ".1%"),
    ("peak allocated (bytes)", ("memory", "allocated"), ",d"),
    ("peak reserved (bytes)", ("memory", "reserved"), ",d"),
    ("peak resident (bytes)", ("memory", "host"), ",d"),
    ("last loss", ("loss", "last"), ".4f"),
    ("graphs", ("compile", "graphs"), "d"),
    ("graph breaks", ("compile", "breaks"), "d"),
)


def _compared(
    name: str, path: Sequence[str], form: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[str, str, str, str]:
    a, b = _at(first, path), _at(second, path)
    change = "-"
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a:
        change = f"{b / a - 1:+.1%}"
    return name, _number(a, form), _number(b, form), change


def _at(result: Any, path: Sequence[str]) -> Any:
    for key in path:
        result = result[key]
    return result


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    kept = ("model", "setup", "device", "versions", "seed", "tokens", "warmup", "steps", "backend")
    a, b = _flat({key: first[key] for key in kept}), _flat({key: second[key] for key in kept})
    lines = [f"differs: {key}: {a.get(key)} → {b.get(key)}" for key in {**a, **b} if a.get(key) != b.get(key)]
    for name, result in (("A", first), ("B", second)):
        if not result["complete"]:
            lines.append(f"{name} is NOT COMPLETE: {result['failure']}")
    return lines


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, part in value.items():
        if isinstance(part, Mapping):
            found |= {f"{key}.{name}": inner for name, inner in part.items()}
        else:
            found[key] = part
    return found
