"""One destination of a transfer: what it lacks, what it has been given, what became of it. One thread keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lj_image.errors import LjImageError
from lj_image.oci.content import Blob
from lj_image.registry.transfer.asking import Found
from lj_image.registry.transfer.delivery import Delivery, Destination
from lj_image.registry.transfer.pace import Member
from lj_image.registry.uploading.upload import Arrival


class Lane:
    """A destination's part of a transfer."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self.member = Member(destination.name)
        self.lacks: dict[Blob, None] = {}
        """Blobs that nobody brings there yet, in order."""
        self.open = 0
        """Blobs that are on their way."""
        self.is_asked = False
        self.error: LjImageError | None = None
        """Set once; read by any thread."""
        self._blobs = dict.fromkeys(("existing", "mounted", "sent"), 0)
        self._bytes = dict.fromkeys(("existing", "mounted", "sent"), 0)

    @property
    def is_in_step(self) -> bool:
        """Whether it goes along with the others, and has not failed."""
        return self.is_asked and self.member.is_in_step and self.error is None

    @property
    def has_ended(self) -> bool:
        """Whether it has all, or will not have it, and nothing is on its way."""
        return self.open == 0 and (self.error is not None or (self.is_asked and not self.lacks))

    def answers(self, found: Mapping[Blob, Found], order: Sequence[Blob]) -> None:
        """Take what the destination said of each blob."""
        self.is_asked = True
        for blob in order:
            way = found[blob]
            if way == "missing":
                self.lacks[blob] = None
            else:
                self._count(way, blob.descriptor.size_bytes)

    def arrives(self, blob: Blob, arrival: Arrival) -> None:
        """Take a blob that it has now."""
        if arrival.way == "sent":
            self._count("sent", arrival.sent_bytes)
        else:
            self._count(arrival.way, blob.descriptor.size_bytes)

    def fails(self, error: LjImageError) -> None:
        """Give up what is not yet on its way; the first error is what it is about."""
        self.error = self.error or error
        self.member.is_in_step = False
        self.lacks.clear()

    def delivery(self, seconds: float) -> Delivery:
        """Return what became of it."""
        return Delivery(
            self.destination,
            self.error,
            sent=self._blobs["sent"],
            sent_bytes=self._bytes["sent"],
            mounted=self._blobs["mounted"],
            mounted_bytes=self._bytes["mounted"],
            existing=self._blobs["existing"],
            existing_bytes=self._bytes["existing"],
            seconds=seconds,
        )

    def _count(self, way: str, size_bytes: int) -> None:
        self._blobs[way] += 1
        self._bytes[way] += size_bytes
