"""What a person asked publishing for, and what became of it: per place, as a table, for machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from lj_image.errors import PartlyPublishedError, PublishError
from lj_image.release.record import Pushed
from lj_image.release.references import Target

State = Literal["published", "already", "planned", "refused", "failed", "withheld"]
"""`refused` is our own decision, before any byte; `failed` is the registry's, the network's or a proof's. A place that
is `withheld` has all of the image, and its tag did not move because another place lacks some of it."""

_MIB = 1024 * 1024
RERUN_HINT = "run the same command again: what is published is left alone"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How content is published, as a person asked for it."""

    all_or_nothing: bool = False
    force_tag: bool = False
    dry_run: bool = False


PLAINLY: Final = Wishes()
"""Each place by itself, and no tag that holds something else."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a place cost."""

    sent_bytes: int = 0
    """All that went out, what had to be sent again with it."""
    mounted_bytes: int = 0
    existing_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one target."""

    target: Target
    state: State
    digest: str | None = None
    """What the tag holds, as the registry says; None when it does not exist or could not be asked for."""
    message: str = ""
    hint: str | None = None
    carried: Carried | None = None
    """None where nothing had to be brought, or where an engine did it."""
    previous: Mapping[str, str] = field(default_factory=dict)
    """Tags that held another digest before, and which."""
    notes: tuple[str, ...] = ()
    """What was left out or changed for this place."""

    @property
    def ok(self) -> bool:
        """Say whether the target has the image, or would get it."""
        return self.state in ("published", "already", "planned")

    def line(self, width: int = 0) -> str:
        """Return one row of the table."""
        place = f"{self.target.reference:<{width}}"
        rewritten = f"(at {self.target.sent_to})" if self.target.rewritten else ""
        parts = (f"{self.state:<9}", place, self.digest, self._cost(), rewritten, self.message, *self.notes)
        return "  ".join(part for part in parts if part).rstrip()

    def _cost(self) -> str:
        if self.carried is None:
            return ""
        named = (
            ("sent", self.carried.sent_bytes),
            ("mounted", self.carried.mounted_bytes),
            ("there", self.carried.existing_bytes),
        )
        parts = [f"{name} {size / _MIB:,.1f} MiB" for name, size in named if size or name == "sent"]
        return f"{', '.join(parts)} in {self.carried.seconds:,.1f} s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of every target, in the order asked for."""

    image: str
    release: str
    tag: str
    image_id: str
    verified: bool
    """Whether this very image passed its verification."""
    results: tuple[Result, ...]

    def error(self) -> PublishError | None:
        """Return what the command must end with: None when every target has the image, or would get it."""
        missing = [result for result in self.results if not result.ok]
        if not missing:
            return None
        kind = PublishError if len(missing) == len(self.results) else PartlyPublishedError
        rows = "".join(f"\n  {result.target.reference}: {result.message}" for result in missing)
        hints = dict.fromkeys(result.hint for result in missing if result.hint)
        return kind(
            f"{len(missing)} of {len(self.results)} places do not have {self.tag}:{rows}",
            hint="\n".join((*hints, RERUN_HINT)),
        )

    def lines(self) -> tuple[str, ...]:
        """Return the table for people."""
        width = max((len(result.target.reference) for result in self.results), default=0)
        return tuple(result.line(width) for result in self.results)

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        return {
            "image": self.image,
            "release": self.release,
            "tag": self.tag,
            "image_id": self.image_id,
            "verified": self.verified,
            "targets": [_json_of(result) for result in self.results],
        }


def published_line(outcome: Outcome) -> str:
    """Return all references that hold the image, by digest, on one line."""
    there = (result for result in outcome.results if result.state in ("published", "already"))
    return " ".join(f"{result.target.reference}@{result.digest}" for result in there)


def pushed_entry(result: Result, digest: str, image_id: str, *, verified: bool) -> Pushed:
    """Return what a record says of a place that has an image."""
    target, carried = result.target, result.carried or Carried()
    return Pushed(
        reference=target.reference,
        sent_to=target.sent_to,
        digest=digest,
        image_id=image_id,
        network=target.endpoint.network,
        region=target.endpoint.region,
        verified=verified,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        tags=target.endpoint.moving_tags,
        sent_bytes=carried.sent_bytes,
        mounted_bytes=carried.mounted_bytes,
        existing_bytes=carried.existing_bytes,
        seconds=round(carried.seconds, 3),
        previous=dict(result.previous),
        notes=result.notes,
    )


def _json_of(result: Result) -> dict[str, Any]:
    endpoint = result.target.endpoint
    return {
        "reference": result.target.reference,
        "sent_to": result.target.sent_to,
        "network": endpoint.network,
        "region": endpoint.region,
        "state": result.state,
        "digest": result.digest,
        "message": result.message,
        "hint": result.hint,
        "carried": asdict(result.carried) if result.carried else None,
        "previous": dict(result.previous),
        "notes": list(result.notes),
    }
