"""Make room in the cache: what no lock names, and what interrupted runs have left.

First everything that could go is listed, then a pure function chooses, then each piece goes under its own lock, so
that a fetch or a build that runs at the same time loses nothing that it needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, assert_never

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.resolve import recipe_of
from lj_image.errors import LjImageError, Location
from lj_image.lock.built_wheels import BuiltWheel
from lj_image.lock.contents import SHA256, Entry, Use, last_used
from lj_image.lock.store import ArtifactStore

HOUR_S: Final = 3600.0
GRACE_S: Final = HOUR_S
"""What is younger may belong to a run that has not written its lock yet."""
TEMPLATES_S: Final = 30 * 24 * HOUR_S
"""Compiled templates that were not used for longer are of texts that have changed since."""
Kind = Literal["artifact", "beginning", "draft", "note", "template", "base"]


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that could go, with all files that go with it."""

    kind: Kind
    title: str
    paths: tuple[Path, ...]
    size_bytes: int
    last_used: float
    sha256: str | None = None
    """The digest under whose lock it goes."""

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"kind": self.kind, "title": self.title, "size_bytes": self.size_bytes, "path": str(self.paths[0])}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is to go."""

    older_than_s: float | None = None
    """Only what was not used for so long."""
    keep_bytes: int | None = None
    """Artifacts go, the longest unused first, only until the others fit into this."""
    everything: bool = False
    """Also what locks name, and what is young."""


def leftovers(
    store: ArtifactStore,
    entries: Iterable[Entry],
    uses: Mapping[str, Use],
    built: Iterable[BuiltWheel],
    bases: frozenset[str],
    *,
    everything: bool = False,
) -> tuple[Leftover, ...]:
    """List what could go: no lock names it, or `everything`; `bases` are the digests of recipes that are in use."""
    cache, built = store.root.parent, tuple(built)
    used = {sha256 for sha256, use in uses.items() if use.locks and not everything}
    return (
        *(_artifact(entry, store, built) for entry in entries if entry.sha256 not in used),
        *_beginnings(store, used),
        *_drafts(store, cache),
        *_notes(store, built),
        *(_single("template", path) for path in sorted((cache / "templates").glob("*"))),
        *_bases(cache / "bases", frozenset() if everything else bases),
    )


def chosen(
    found: Iterable[Leftover], limits: Limits, artifacts_bytes: int, now: float | None = None
) -> tuple[Leftover, ...]:
    """Choose among the leftovers; `artifacts_bytes` is the size of all artifacts, those in use included."""
    now = time.time() if now is None else now
    old = [item for item in found if now - item.last_used >= _least_age_s(item.kind, limits)]
    artifacts = sorted((item for item in old if item.kind == "artifact"), key=lambda item: item.last_used)
    others = tuple(item for item in old if item.kind != "artifact")
    if limits.keep_bytes is None:
        return (*artifacts, *others)
    going: list[Leftover] = []
    for item in artifacts:
        if artifacts_bytes <= limits.keep_bytes:
            break
        going.append(item)
        artifacts_bytes -= item.size_bytes
    return (*going, *others)


def remove(items: Iterable[Leftover], store: ArtifactStore) -> tuple[Leftover, ...]:
    """Remove leftovers and return those that are gone; what somebody is writing at this moment stays.

    Raises LjImageError while a build runs: it reads files that no lock in the catalog need name.
    """
    items = tuple(items)
    if items:
        store.prepare()
    with ExitStack() as held:
        for path in sorted((store.root.parent / "records").glob("*/.*.build.lock")):
            held.callback(_taken(path).release)
        return tuple(item for item in items if _removed(item, store))


def base_digests(catalog: Catalog) -> frozenset[str]:
    """Return the digests of the recipes of all bases of ours in a catalog."""
    folders = {path.parent.name: path for path in catalog.root.glob("*/image.yaml")}
    ours = {name: path for name, path in folders.items() if name not in catalog.family_names}
    return frozenset(
        recipe_of(catalog.bootstrap(name, Location(str(path)))).digest() for name, path in sorted(ours.items())
    )


def _least_age_s(kind: Kind, limits: Limits) -> float:
    if limits.everything:
        return limits.older_than_s or 0.0
    match kind:
        case "template":
            return limits.older_than_s if limits.older_than_s is not None else TEMPLATES_S
        case "artifact" | "beginning" | "draft" | "note" | "base":
            return max(limits.older_than_s or 0.0, GRACE_S)
        case _:
            assert_never(kind)


def _artifact(entry: Entry, store: ArtifactStore, built: Iterable[BuiltWheel]) -> Leftover:
    notes = (wheel.note for wheel in built if wheel.sha256 == entry.sha256)
    marker = entry.path.with_suffix(".verified")
    paths = (entry.path, marker, *notes)
    return Leftover("artifact", entry.file or entry.sha256[:12], paths, entry.size_bytes, entry.last_used, entry.sha256)


def _beginnings(store: ArtifactStore, used: set[str]) -> Iterator[Leftover]:
    """List beginnings of files that nobody will resume, because no lock names them any more."""
    for path in sorted((store.root / "sha256").glob("??/*.partial")):
        if path.stem not in used:
            yield _single("beginning", path, path.stem if SHA256.fullmatch(path.stem) else None)


def _drafts(store: ArtifactStore, cache: Path) -> Iterator[Leftover]:
    """List what killed runs have left under a name of their own, and markers whose file is gone."""
    folder = store.root / "sha256"
    patterns = ((store.root, "incoming.*"), (folder, "??/*.verified.*"), (cache / "wheels", "*.[0-9]*"))
    yield from (_single("draft", path) for start, pattern in patterns for path in sorted(start.glob(pattern)))
    markers = sorted(folder.glob("??/*.verified"))
    yield from (_single("draft", path) for path in markers if not path.with_suffix("").exists())


def _notes(store: ArtifactStore, built: Iterable[BuiltWheel]) -> Iterator[Leftover]:
    """List notes about wheels that are no longer there."""
    return (_single("note", wheel.note) for wheel in built if not store.path(wheel.sha256).exists())


def _bases(folder: Path, used: frozenset[str]) -> Iterator[Leftover]:
    for path in sorted(folder.glob("*.tar")):
        if path.stem not in used:
            base = _single("base", path)
            yield Leftover("base", base.title, (path, path.with_suffix(".diff-id")), base.size_bytes, base.last_used)


def _single(kind: Kind, path: Path, sha256: str | None = None) -> Leftover:
    try:
        size, at = path.stat().st_size, last_used(path)
    except OSError:
        size, at = 0, time.time()
    return Leftover(kind, path.name, (path,), size, at, sha256)


class _Busy(Exception):
    """Somebody writes the file at this moment."""


def _removed(item: Leftover, store: ArtifactStore) -> bool:
    """Remove one leftover under the lock of whoever might be writing it."""
    try:
        with ExitStack() as held:
            if item.sha256 is not None:
                held.enter_context(store.writing(item.sha256, _only_once()))
            elif item.kind == "base":
                held.callback(_taken(item.paths[0].with_suffix(".lock")).release)
            with store.explained(item.paths[0], 0):
                for path in item.paths:
                    path.unlink(missing_ok=True)
    except _Busy:
        return False
    return True


def _only_once() -> Any:
    """Return a check for `ArtifactStore.writing` that lets it try once, and not wait."""
    tries = iter((True,))

    def check() -> None:
        if not next(tries, False):
            raise _Busy

    return check


def _taken(path: Path) -> Any:
    """Take a lock file that others may hold; the caller releases it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        with suppress(FileNotFoundError):
            lock.acquire(timeout=0)
    except Timeout:
        if not path.name.endswith(".build.lock"):
            raise _Busy from None
        key = path.name.removeprefix(".").removesuffix(".build.lock")
        raise LjImageError(
            f"a build of {path.parent.name} {key} is running", hint="wait for its end, then clean up"
        ) from None
    return lock
