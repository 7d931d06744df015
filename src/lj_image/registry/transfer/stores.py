"""Which repository of a store has a blob, or is being sent it: from there the others of the same store get it."""

from __future__ import annotations

from collections.abc import Hashable

from lj_image.oci.content import Blob
from lj_image.registry.transfer.delivery import Destination


class Stores:
    """What is known of stores; one thread keeps it."""

    def __init__(self) -> None:
        self._having: dict[tuple[Hashable, Blob], str] = {}
        self._getting: dict[tuple[Hashable, Blob], Destination] = {}

    def arrived(self, destination: Destination, blob: Blob) -> None:
        """Note that a destination has a blob."""
        self._getting.pop(self._key(destination, blob), None)
        self._having.setdefault(self._key(destination, blob), destination.repository)

    def begun(self, destination: Destination, blob: Blob) -> None:
        """Note that a destination is being sent a blob."""
        self._getting[self._key(destination, blob)] = destination

    def ended(self, destination: Destination, blob: Blob) -> None:
        """Note that a destination is sent a blob no more."""
        if self._getting.get(self._key(destination, blob)) is destination:
            del self._getting[self._key(destination, blob)]

    def is_awaited(self, destination: Destination, blob: Blob) -> bool:
        """Say whether another destination of the same store is being sent a blob."""
        return self._getting.get(self._key(destination, blob), destination) is not destination

    def origin(self, destination: Destination, blob: Blob) -> str | None:
        """Return `host/repository` from which a destination can have a blob mounted."""
        repository = self._having.get(self._key(destination, blob))
        return None if repository is None else f"{destination.registry.host}/{repository}"

    @staticmethod
    def _key(destination: Destination, blob: Blob) -> tuple[Hashable, Blob]:
        """Return what names a blob's store; a registry that mounts nothing has one for each repository."""
        store = destination.store or destination.registry.host
        return (store if destination.registry.capabilities.mount else (store, destination.repository)), blob
