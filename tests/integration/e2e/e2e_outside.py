"""What lies outside of the machine, as the fixtures hand it to the tests."""

from __future__ import annotations

from dataclasses import dataclass

from unit.lock.loopback import Loopback


@dataclass(frozen=True)
class Outside:
    """Indexes and archives, each served on loopback."""

    vendor: Loopback
    public: Loopback
    archives: Loopback
