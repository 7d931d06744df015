"""Options that name parts of a release: `--only a,b` and `--set a=1.2`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lj_image.errors import UsageError
from lj_image.suggest import did_you_mean

if TYPE_CHECKING:
    from lj_image.catalog.release import Release


def components_named(only: str | None, release: Release) -> tuple[str, ...]:
    """Return the component ids in `a,b`; raises UsageError for one that the release does not have."""
    names = tuple(name.strip() for name in only.split(",") if name.strip()) if only else ()
    known = [component.id for component in release.components]
    for name in names:
        if name not in known:
            raise UsageError(f"--only: no component {name!r}", hint=did_you_mean(name, known, noun="components"))
    return names


def versions_set(pairs: Iterable[str]) -> dict[str, str]:
    """Return component -> version from `component=version` arguments."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, version = pair.partition("=")
        if not (name and equals and version):
            raise UsageError(f"--set {pair}: not `component=version`", hint="write for example --set vllm=0.7.3")
        found[name] = version
    return found
