"""Where blobs go, and what became of them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lj_image.errors import LjImageError
from lj_image.registry.client import Registry


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """A repository that is to have the blobs."""

    name: str
    """For people, and unique among those of one transfer: `public`, `cn-beijing`."""
    registry: Registry
    repository: str
    store: str = ""
    """Names what lies behind, where several hosts lead to one; empty: the host is the only way there."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the blobs at one destination."""

    destination: Destination
    error: LjImageError | None = None
    """Why it does not have all of them; None where it has."""
    sent: int = 0
    """Blobs."""
    sent_bytes: int = 0
    """All that went out, what had to be sent again with it."""
    mounted: int = 0
    mounted_bytes: int = 0
    existing: int = 0
    existing_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """What became of the blobs everywhere."""

    deliveries: tuple[Delivery, ...]
    """In the order of the destinations."""
    read_bytes: int
    """Read once for all."""
    reread_bytes: int
    """Read again for one destination that had fallen behind, or had to send something again."""


class TransferWatcher(Protocol):
    """Sees a transfer, from several threads."""

    def expects(self, destination: Destination, total_bytes: int) -> None:
        """See how much a destination lacks, once that is known."""

    def advances(self, destination: Destination, by_bytes: int) -> None:
        """See bytes taken by a destination, or found there; a negative number takes back what has to be sent again."""

    def says(self, destination: Destination, words: str) -> None:
        """See what is worth a line: that something is tried again, or that a destination fell behind."""

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        """See that a destination has all, or that it will not."""


class Unwatched:
    """Sees nothing."""

    def expects(self, destination: Destination, total_bytes: int) -> None:
        """Do nothing."""

    def advances(self, destination: Destination, by_bytes: int) -> None:
        """Do nothing."""

    def says(self, destination: Destination, words: str) -> None:
        """Do nothing."""

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        """Do nothing."""


UNWATCHED: TransferWatcher = Unwatched()
