"""What this machine knows of its releases: every record of every family, newest first.

A record holds the last build only, and where that was pushed; so this is where things stand, not a diary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lj_image.errors import LjImageError, Location, UsageError
from lj_image.release.record import Pushed, Record, Records
from lj_image.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the file that holds it."""

    key: str
    """Such as 25.02-open, or 25.02-open-partial."""
    path: Path
    record: Record

    @property
    def last_change(self) -> str:
        """When it was last built, verified or pushed; UTC, ISO 8601, empty when nothing of that happened."""
        record = self.record
        times = (record.built and record.built.at, record.verified and record.verified.at, *self._push_times())
        return max((time for time in times if time), default="")

    def _push_times(self) -> Iterator[str]:
        return (item.at for item in self.record.pushed)

    @property
    def proof(self) -> str:
        """What is known of the proof of the image that was built last, in a word or two."""
        built, verified = self.record.built, self.record.verified
        if verified is None:
            return "no"
        if built is not None and verified.image_id != built.image_id:
            return "an earlier image"
        return "yes" if verified.passed else f"failed: {len(verified.failed)} of {verified.checks}"

    def pushed_now(self) -> tuple[Pushed, ...]:
        """Return where the image of the last build is, newest first; an earlier image's places are another matter."""
        built = self.record.built
        own = [item for item in self.record.pushed if built is None or item.image_id == built.image_id]
        return tuple(sorted(own, key=lambda item: item.at, reverse=True))

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"key": self.key, "file": str(self.path)} | asdict(self.record)


@dataclass(frozen=True, slots=True)
class History:
    """All records, and what is wrong with those that cannot be shown."""

    kept: tuple[Kept, ...]
    """Newest first."""
    refused: tuple[LjImageError, ...]


def history(cache_dir: Path, release: str | None = None) -> History:
    """Read every record below a cache; with `release`, written `25.02` or `image/25.02`, only its own.

    Raises UsageError for a release of which there is no record.
    """
    kept: list[Kept] = []
    refused: list[LjImageError] = []
    for path in sorted((cache_dir / "records").glob("*/[!.]*.json")):
        try:
            kept.append(_read(cache_dir, path))
        except LjImageError as error:
            refused.append(error)
    chosen = [item for item in kept if release is None or release in _names(item.record)]
    if release is not None and not chosen:
        raise _unknown(release, kept, tuple(refused))
    return History(tuple(sorted(chosen, key=lambda item: item.last_change, reverse=True)), tuple(refused))


def _read(cache_dir: Path, path: Path) -> Kept:
    """Read one record; raises LjImageError for one that is damaged, or that of another image or release."""
    try:
        record = Records(cache_dir, path.parent.name).read(path.stem)
    except (OSError, AttributeError) as error:
        raise LjImageError(f"the record cannot be read: {error}", location=Location(str(path))) from None
    if record is None:  # it was there a moment ago
        raise LjImageError("the record is gone", location=Location(str(path)))
    key = f"{record.release}-{record.variant}"
    if record.image != path.parent.name or not (path.stem == key or path.stem.startswith(f"{key}-")):
        raise LjImageError(
            f"this is the record of {record.image} {key}, not of {path.parent.name} {path.stem}",
            hint="move it to where it belongs, or delete it and build again",
            location=Location(str(path)),
        )
    return Kept(path.stem, path, record)


def _names(record: Record) -> tuple[str, str]:
    return record.release, f"{record.image}/{record.release}"


def _unknown(release: str, kept: list[Kept], refused: tuple[LjImageError, ...]) -> UsageError:
    known = sorted({name for item in kept for name in _names(item.record)})
    also = "".join(f"\nnot readable: {error.location}" for error in refused)
    return UsageError(
        f"nothing is recorded of {release!r} on this machine",
        hint=did_you_mean(release, known, noun="releases") + also,
    )
