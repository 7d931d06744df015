"""A run told in Markdown, for the page of a CI job: what was done, where the image is, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lj_image import __version__
from lj_image.errors import LjImageError
from lj_image.release.outcome import Result
from lj_image.release.pipeline.report import RunReport


def markdown(report: RunReport) -> str:
    """Return the summary; it holds no link, since registries are no pages."""
    parts = (
        [f"# {report.title}", _verdict(report)],
        _facts(report),
        _steps(report),
        _references(report),
        _failures(report),
    )
    return "\n\n".join(line for part in parts for line in part) + "\n"


def _verdict(report: RunReport) -> str:
    match report.exit_code, report.asked.dry_run:
        case 0, True:
            return "**Dry run**: nothing was built, nothing was sent."
        case 0, False:
            return "**Published.**"
        case 3, False:
            return "**Partly published**: some places do not have it."
        case 130, _:
            return "**Interrupted**: the same command goes on where it ended."
        case _:
            return f"**Failed** at {report.wrong.name}." if report.wrong else "**Failed.**"


def _facts(report: RunReport) -> Iterator[str]:
    if report.work is None:
        return
    rows = [("tag", report.work.release.tag), ("platform", str(report.work.release.platform))]
    built = report.record.built if report.record else None
    verified = report.record.verified if report.record else None
    if built:
        rows += [("image", built.image_id), ("builder", built.builder), ("base", built.base), ("lock", built.lock)]
        compressed = " compressed" if built.is_assembled else ""
        rows += [("size", f"{built.size_bytes / 1024**2:,.1f} MiB{compressed}")]
    if verified and built and verified.image_id == built.image_id:
        word = "passed" if verified.passed else "FAILED"
        rows += [("proof", f"{word}, {verified.checks} checks, {verified.at}")]
    rows += [("made by", f"lj-image {__version__}")]
    yield _table(("", ""), ((name, f"`{value}`") for name, value in rows))


def _steps(report: RunReport) -> Iterator[str]:
    yield "## Steps"
    yield _table(
        ("step", "state", "seconds", "what"),
        ((step.name, step.state, f"{step.seconds:,.1f}", step.what) for step in report.steps),
    )


def _references(report: RunReport) -> Iterator[str]:
    if report.work is None or not (report.published or report.results):
        return
    yield "## References"
    if report.published:
        yield "\n".join(f"- `{item.reference}@{item.digest}`" for item in report.published)
    if planned := [result for result in report.results if result.state == "planned"]:
        yield "\n".join(f"- `{result.target.reference}`: {result.message}" for result in planned)
    count = len(report.published)
    missing = f"; missing: {', '.join(report.missing)}" if report.missing else ""
    yield f"{count} of {count + len(report.missing)} places of this release have it{missing}."


def _failures(report: RunReport) -> Iterator[str]:
    failed = [result for result in report.results if not result.ok]
    if report.error is None:
        return
    yield "## What failed"
    if failed:
        yield "\n".join(_failure(item) for item in failed)
    for step in report.steps:
        if step.error is not None and not (step.name == "push" and failed):
            yield _code(f"{step.name}: ", step.error)


def _failure(result: Result) -> str:
    way_out = f"\n  - {_inline(result.hint)}" if result.hint else ""
    return f"- `{result.target.reference}`: {_inline(result.message)}{way_out}"


def _code(prefix: str, error: LjImageError) -> str:
    """Return an error as the terminal shows it."""
    lines = (line.replace("```", "'''") for line in error.lines())
    return "```text\n" + prefix + "\n".join(lines) + "\n```"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_inline, line))} |" for line in lines)


def _inline(text: str) -> str:
    """Return a text that stays within its line and cell."""
    return " ".join(text.split()).replace("|", "\\|")
