"""The record: what was built, verified and pushed, as one JSON document per release × variant.

Kept in the cache, one folder per image family; written by rename under a lock, so two runs never mix.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lj_image.errors import LjImageError, Location
from lj_image.whole import write_whole

FORMAT = 1
ASSEMBLED = "oci"
"""The builder that needs no engine."""


@dataclass(frozen=True, slots=True)
class Built:
    """An image that exists."""

    image_id: str
    """`sha256:…`, as the engine names it; of an image that was assembled without one, its configuration's digest."""
    tag: str
    """Local reference, image:tag."""
    inputs: str
    """Digest over everything that the image was made from."""
    plan: str
    """Digest of the plan, to see whether the release was edited since."""
    lock: str
    """The lock's digest."""
    builder: str
    base: str
    """The base's reference with its digest or id."""
    at: str
    """UTC, ISO 8601."""
    seconds: float
    size_bytes: int
    partial: bool = False
    overridden: dict[str, str] = field(default_factory=dict)
    manifest: str | None = None
    """Digest of the manifest, `sha256:…`, of an image that was assembled without an engine: it lies in the cache."""

    @property
    def is_assembled(self) -> bool:
        """Whether it was assembled without an engine, which may not have it."""
        return self.builder == ASSEMBLED


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome of the proof for one image id."""

    image_id: str
    passed: bool
    checks: int
    failed: tuple[str, ...]
    found: dict[str, str]
    """Component id -> the version found inside."""
    at: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """A reference that holds the image, as the registry itself says."""

    reference: str
    """The real name, before any rewriting."""
    sent_to: str
    """Where the bytes went on this machine; equal to `reference` unless the config rewrites it."""
    digest: str
    """Of the manifest, `sha256:…`."""
    image_id: str
    network: str
    region: str | None
    verified: bool
    at: str
    tags: tuple[str, ...] = ()
    """Further tags of the place that stand for it."""
    sent_bytes: int = 0
    """All that went out when it was published; zero as well where an engine sent it."""
    mounted_bytes: int = 0
    existing_bytes: int = 0
    seconds: float = 0.0
    previous: dict[str, str] = field(default_factory=dict)
    """Tags that held another digest before, and which."""
    notes: tuple[str, ...] = ()
    """What was left out or changed for this place."""


@dataclass(frozen=True, slots=True)
class Retracted:
    """A tag that was taken away from a place."""

    reference: str
    """The real name, before any rewriting."""
    digest: str
    """What it held, `sha256:…`."""
    at: str


@dataclass(frozen=True, slots=True)
class Record:
    """All that is known of one release × variant on this machine."""

    image: str
    release: str
    variant: str
    built: Built | None = None
    verified: Verified | None = None
    pushed: tuple[Pushed, ...] = ()
    tool: str = ""
    """The version of lj-image that wrote it."""
    retracted: tuple[Retracted, ...] = ()
    """In the order in which it happened."""

    def proves(self, image_id: str) -> bool:
        """Say whether this very image passed its verification."""
        return self.verified is not None and self.verified.passed and self.verified.image_id == image_id

    def with_pushed(self, pushed: Pushed) -> Record:
        """Return a record in which `pushed` replaces what was known of its reference."""
        others = tuple(item for item in self.pushed if item.reference != pushed.reference)
        return replace(self, pushed=(*others, pushed))

    def with_retracted(self, retracted: Retracted) -> Record:
        """Return a record that knows of a tag taken away: nothing is there any more under its reference.

        A further tag of a place leaves the place's own reference as it is.
        """
        name, _, tag = retracted.reference.rpartition(":")
        kept = (item for item in self.pushed if item.reference != retracted.reference)
        pushed = tuple(
            replace(item, tags=tuple(other for other in item.tags if other != tag))
            if item.reference.rpartition(":")[0] == name
            else item
            for item in kept
        )
        return replace(self, pushed=pushed, retracted=(*self.retracted, retracted))


class Records:
    """The records of one image family, as files."""

    def __init__(self, cache_dir: Path, image: str) -> None:
        self.folder = cache_dir / "records" / image
        self.image = image

    def path(self, key: str) -> Path:
        """Return the file of one release × variant, such as 25.02-open."""
        return self.folder / f"{key}.json"

    def read(self, key: str) -> Record | None:
        """Return a record, or None when nothing was built; raises LjImageError for a damaged file."""
        path = self.path(key)
        try:
            return _from_json(json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise LjImageError(
                f"the record of {key} is damaged: {error}",
                hint="delete the file and build again",
                location=Location(str(path)),
            ) from None

    def update(self, key: str, change: Callable[[Record | None], Record]) -> Record:
        """Replace a record by `change(record)`, under a lock, by rename."""
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / f".{key}.lock"):
            record = change(self.read(key))
            write_whole(self.path(key), json.dumps({"format": FORMAT} | asdict(record), indent=2) + "\n", alone=True)
        return record

    def all(self) -> tuple[Record, ...]:
        """Return every record of the family; raises LjImageError for a damaged one."""
        records = (self.read(path.stem) for path in sorted(self.folder.glob("*.json")))
        return tuple(record for record in records if record is not None)


def _from_json(values: dict[str, Any]) -> Record:
    if values.pop("format") != FORMAT:
        raise ValueError("written by another version of lj-image")
    built, verified = values.pop("built"), values.pop("verified")
    pushed = tuple(_pushed(item) for item in values.pop("pushed"))
    retracted = tuple(Retracted(**item) for item in values.pop("retracted", ()))
    return Record(
        **values,
        built=Built(**built) if built else None,
        verified=Verified(**{**verified, "failed": tuple(verified["failed"])}) if verified else None,
        pushed=pushed,
        retracted=retracted,
    )


def _pushed(values: dict[str, Any]) -> Pushed:
    lists = {name: tuple(values.get(name, ())) for name in ("tags", "notes")}
    return Pushed(**{**values, **lists})
