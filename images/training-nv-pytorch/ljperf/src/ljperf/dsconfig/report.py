"""A checked file: findings with their places, the sizes in effect, as text and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ljperf.dsconfig.check import findings, has_auto
from ljperf.dsconfig.derived import Effective, effective
from ljperf.dsconfig.finding import Finding
from ljperf.dsconfig.keys import installed
from ljperf.dsconfig.source import Place, Source, read
from ljperf.report.table import table


@dataclass(frozen=True, slots=True)
class Line:
    """A finding and where in the file it is."""

    finding: Finding
    place: Place


@dataclass(frozen=True, slots=True)
class Checked:
    """All that there is to say about one file."""

    path: str
    transformers: bool
    assumed: bool
    """`transformers` was guessed from the config."""
    deepspeed: str | None
    """The version it was checked for; None: all that are known."""
    hidden: int | None
    lines: tuple[Line, ...]
    sizes: tuple[Effective, ...]


def checked(
    path: Path,
    *,
    transformers: bool | None = None,
    world_size: int | None = None,
    hidden: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    deepspeed_version: str | None = None,
) -> Checked:
    """Read and check a file; `transformers` None: as the config looks. Raises ConfigNotReadError."""
    source = read(path, strict_json=bool(transformers))
    fills = has_auto(source.config) if transformers is None else transformers
    if fills and transformers is None:
        source = read(path, strict_json=True)
    found = findings(
        source.config,
        transformers=fills,
        world_size=world_size,
        hidden=hidden,
        deepspeed_version=deepspeed_version,
        arguments=arguments,
    )
    sizes = effective(source.config, hidden)
    version = deepspeed_version or installed()
    return Checked(str(path), fills, transformers is None, version, hidden, _lines(source, found), sizes)


def _lines(source: Source, found: Iterable[Finding]) -> tuple[Line, ...]:
    """Errors first, then by place."""
    lines = [Line(finding, place) for finding, place in source.faults]
    lines += [Line(finding, place_of(finding.pointer, source.places)) for finding in found]
    return tuple(sorted(lines, key=lambda line: (line.finding.severity != "error", line.place.line, line.place.column)))


def place_of(pointer: str, places: Mapping[str, Place]) -> Place:
    """Where a pointer, or what encloses it, is in the file."""
    while pointer not in places and pointer:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer, Place(1, 1))


def text(result: Checked) -> str:
    """For a terminal: findings, sizes, a count."""
    parts = [*(_finding(result.path, line) for line in result.lines), _sizes(result), _count(result)]
    return "\n".join(part for part in parts if part)


def _finding(path: str, line: Line) -> str:
    finding, place = line.finding, line.place
    where = f" {finding.pointer}" if finding.pointer else ""
    first = f"{path}:{place.line}:{place.column}: {finding.severity}{where}: {finding.message}"
    return first if finding.hint is None else f"{first}\n  {finding.hint}"


def _sizes(result: Checked) -> str:
    if not result.sizes:
        return ""
    model = f", hidden size {result.hidden:,}" if result.hidden else ""
    headers = ("elements in effect", "written", "DeepSpeed alone", f"under Transformers{model}")
    rows = [(size.name, _written(size), _elements(size.plain), _filled(size)) for size in result.sizes]
    return "\n" + table(headers, rows) + "\n"


def _written(size: Effective) -> str:
    return "(absent)" if size.written is None else str(size.written)


def _elements(size: int | None) -> str:
    return "refused" if size is None else f"{size:,}"


def _filled(size: Effective) -> str:
    if size.written == "auto" and size.transformers is None:
        return "by hidden size"
    return _elements(size.transformers)


def _count(result: Checked) -> str:
    severities = [line.finding.severity for line in result.lines]
    errors, warnings = severities.count("error"), severities.count("warning")
    who = "filled in by Transformers" if result.transformers else "read by DeepSpeed alone"
    why = (' (it has "auto")' if result.transformers else ' (it has no "auto")') if result.assumed else ""
    version = f"DeepSpeed {result.deepspeed}" if result.deepspeed else "every DeepSpeed from 0.15.4 on"
    return f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}: {who}{why}, {version}"


def document(result: Checked) -> dict[str, Any]:
    """For programs."""
    severities = [line.finding.severity for line in result.lines]
    return {
        "file": result.path,
        "transformers": result.transformers,
        "deepspeed": result.deepspeed,
        "hidden_size": result.hidden,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "findings": [_entry(line) for line in result.lines],
        "sizes": [_size(size) for size in result.sizes],
    }


def _entry(line: Line) -> dict[str, Any]:
    finding = line.finding
    return {
        "pointer": finding.pointer,
        "line": line.place.line,
        "column": line.place.column,
        "severity": finding.severity,
        "message": finding.message,
        "hint": finding.hint,
    }


def _size(size: Effective) -> dict[str, Any]:
    written = size.written
    return {"name": size.name, "written": written, "deepspeed": size.plain, "transformers": size.transformers}
