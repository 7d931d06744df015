"""Where content is published, and what became of it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lj_image.errors import LjImageError
from lj_image.oci.digest import Digest
from lj_image.registry.transfer.delivery import Delivery, Destination

State = Literal["published", "already", "planned", "refused", "failed", "withheld"]
"""`refused` is our own decision, before any byte; `failed` is the registry's or the network's. A place that is
`withheld` has all of the content, and its tag was not moved because another place does not."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, and the tags that are to stand for the content there."""

    destination: Destination
    tags: tuple[str, ...]
    """The first is the release's own, which moves only by force; the others move with each release."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of one place."""

    place: Place
    state: State
    digest: Digest | None = None
    """What the first tag holds now, as the registry says; None without it."""
    previous: Mapping[str, Digest] = field(default_factory=dict)
    """Tags that held something else before, and what."""
    delivery: Delivery | None = None
    """None where nothing had to be brought."""
    notes: tuple[str, ...] = ()
    """What was left out or changed for this place, in a sentence each."""
    error: LjImageError | None = None
