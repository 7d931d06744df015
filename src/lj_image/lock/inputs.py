"""The lines that decide a resolution: readable in review, compared to see whether a lock is stale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lj_image.catalog.names import normalised
from lj_image.catalog.release import ArchiveSource, Component, PipSource, Release


def inputs_of(release: Release) -> tuple[str, ...]:
    """Return what a release asks of the resolver, a line each, sorted; without any address."""
    facts = release.base.facts
    lines = {f"python {facts.python}", f"platform {release.platform} glibc {facts.glibc}"}
    lines.update(line for component in release.components for line in _component_lines(component))
    protected = {normalised(name) for name in release.protected}
    for name, version in facts.packages.items():
        mark = " (protected)" if normalised(name) in protected else ""
        lines.add(f"base {normalised(name)}=={version}{mark}")
    return tuple(sorted(lines))


def _component_lines(component: Component) -> Iterator[str]:
    match component.source:
        case PipSource(project=Path()):
            return  # nothing is asked of the resolver: what it requires is in the image, or `build` says what is not
        case PipSource() as source:
            for name, version in source.distributions:
                pin = f"{normalised(name)}{source.extras_suffix}=={version}"
                yield f"require {pin} [component {component.id}, index {source.index}]"
                if source.overrides:
                    yield f"override {pin}"
        case ArchiveSource() as source:
            yield f"archive {component.id} {component.version} file {source.file} location {source.location}"
        case _:
            return
