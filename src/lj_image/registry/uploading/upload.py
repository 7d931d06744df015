"""A blob's upload, from asking whether it is there to asking whether it arrived.

After everything that went wrong the registry is asked where the upload stands; bytes that it has are not sent again.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-blobs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import httpx

from lj_image.errors import ArtifactError
from lj_image.oci.capabilities import UploadForm
from lj_image.oci.digest import Digest, digest_of_stream
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError, diagnosis, refused, unreachable
from lj_image.registry.uploading.body import BlobBody
from lj_image.registry.uploading.journal import Journal, Place
from lj_image.registry.uploading.presence import ask_for, is_present, mount
from lj_image.registry.uploading.session import Session, Uploads, accepted

__all__ = ["Arrival", "Way", "bring_blob", "mount", "upload"]

Way = Literal["existing", "mounted", "sent"]
"""How a blob came to be in a repository."""
Watch = Callable[[int], None]
"""Is told at which byte of the blob the upload is; it may go back when something has to be sent again."""

_TAKEN: Final = (200, 201, 202, 204)
_STORED: Final = (200, 201, 204)
_REFUSES_FORM: Final = (400, 405, 411, 413, 416)
"""Answers to a first chunk by which registries refuse chunks, or such large ones."""
_LATE_ANSWERS: Final = 4
"""How often a registry is asked for what it has just stored."""
_OTHER_FORM: Final[dict[UploadForm, UploadForm]] = {"chunks": "put", "put": "stream", "stream": "put"}


@dataclass(frozen=True, slots=True)
class Arrival:
    """A blob that is in a repository now."""

    way: Way
    sent_bytes: int = 0
    """All that went out for it, what had to be sent again with it."""
    resumed_at: int = 0
    """The byte at which the upload of an earlier run was taken up."""


def bring_blob(
    registry: Registry,
    repository: str,
    body: BlobBody,
    *,
    origin: str = "",
    watch: Watch = lambda at_byte: None,
    journal: Journal | None = None,
) -> Arrival:
    """Let a repository have a blob, by the cheapest way there is: it has it, another repository has it, it is sent.

    `origin` is `host/repository` of a registry that has it. Raises RegistryError, ArtifactError for a body that is not
    what its digest says, CutOff.
    """
    if is_present(registry, repository, body.descriptor):
        return Arrival("existing")
    host, _, other = origin.partition("/")
    is_neighbour = host == registry.host and other != repository and registry.capabilities.mount
    if is_neighbour and mount(registry, repository, body.descriptor.digest, other):
        return Arrival("mounted")
    return upload(registry, repository, body, watch=watch, journal=journal)


def upload(
    registry: Registry,
    repository: str,
    body: BlobBody,
    *,
    watch: Watch = lambda at_byte: None,
    journal: Journal | None = None,
) -> Arrival:
    """Send a blob; raises as `bring_blob`."""
    return _Upload(registry, repository, body, watch, journal).run()


class _Lost(Exception):
    """The registry does not know the upload any more."""


class _Upload:
    """One blob on its way: how it goes, how far it is, how often something went wrong without a new byte."""

    def __init__(
        self, registry: Registry, repository: str, body: BlobBody, watch: Watch, journal: Journal | None
    ) -> None:
        self._registry, self._repository, self._body, self._watch = registry, repository, body, watch
        self._connection, self._takes = registry.connection, registry.capabilities
        self._uploads = Uploads(registry, repository, body)
        self._size = body.descriptor.size_bytes
        self._place = Place(registry.host, repository, str(body.descriptor.digest), self._size)
        self._journal = journal
        self._form: UploadForm = self._takes.upload
        self._has_changed_form = self._was_damaged = False
        self._session: Session | None = None
        self._attempt = self._furthest = self._resumed_at = 0

    def run(self) -> Arrival:
        """Send it, whatever it takes."""
        while True:
            try:
                if self._step():
                    return Arrival("sent", self._uploads.sent_bytes, self._resumed_at)
            except httpx.TransportError as error:
                if self._is_there_after(error):
                    return Arrival("sent", self._uploads.sent_bytes, self._resumed_at)
            except _Lost:
                self._restart()

    def _step(self) -> bool:
        """Do what comes next; say whether the blob is stored."""
        if self._session is None:
            self._session = self._taken_up() or self._uploads.begin()
            self._note()
        session, form = self._session, self._form
        self._watch(session.offset)
        if form == "put" or self._is_last(session):
            return self._closed(session, self._uploads.put(session, session.offset))
        if session.offset == self._size:
            return self._closed(session, self._uploads.put(session, self._size))
        end = self._size if form == "stream" else min(self._size, session.offset + self._chunk_bytes(session))
        self._patched(session, end, self._uploads.patch(session, end, with_range=form == "chunks"))
        return False

    def _is_last(self, session: Session) -> bool:
        """Say whether the rest goes with the closing PUT: all of a small blob, or where an empty one is no end."""
        left = self._size - session.offset
        if self._form != "chunks" or left > self._chunk_bytes(session):
            return False
        return session.offset == 0 or (self._takes.last_chunk_in_put and left > 0)

    def _chunk_bytes(self, session: Session) -> int:
        return max(self._takes.chunk_bytes, session.least_chunk_bytes)

    def _patched(self, session: Session, end: int, response: httpx.Response) -> None:
        if response.status_code in _TAKEN:
            location = self._connection.location(response)
            self._session = accepted(session, response, end, location)
            self._advanced(self._session.offset)
            self._note()
            return
        if session.offset == 0 and response.status_code in _REFUSES_FORM and self._changes_form():
            return
        self._after_refusal(response)

    def _closed(self, session: Session, response: httpx.Response) -> bool:
        if response.status_code in _STORED:
            self._require_right(response)
            self._forget()
            self._watch(self._size)
            return True
        is_whole = session.offset == 0 and self._form in ("put", "chunks")
        if is_whole and response.status_code in (405, 411, 413, 416) and self._changes_form():
            return False
        if response.status_code == 400 and diagnosis(response)[0] == "DIGEST_INVALID" and not self._was_damaged:
            self._was_damaged = True  # on the way, or by a range that was believed: once more, from the beginning
            raise _Lost
        if response.status_code >= 500 and self._is_stored():
            self._forget()
            return True
        self._after_refusal(response)
        return False

    def _after_refusal(self, response: httpx.Response) -> None:
        """Make ready for another attempt, or raise what the registry said."""
        failure = refused(response, self._uploads.what)
        is_about_session = response.status_code in (401, 404, 416)
        if not self._connection.wait_before(self._attempt, None if is_about_session else response):
            self._give_up(failure)
        self._attempt += 1
        if response.status_code == 404:
            raise _Lost
        self._ask_where_it_stands()

    def _is_there_after(self, error: httpx.TransportError) -> bool:
        """Say, after a lost connection, whether all arrived; else make ready for another attempt."""
        if not self._connection.wait_before(self._attempt, error=error):
            raise unreachable(error, self._connection.host) from None
        self._attempt += 1
        if self._session is None:
            return False
        if self._is_stored():
            self._forget()
            return True
        self._ask_where_it_stands()
        return False

    def _ask_where_it_stands(self) -> None:
        if self._session is None:
            return
        # What one request holds whole cannot be taken up in the middle.
        found = None if self._form == "put" else self._uploads.find(self._session)
        if found is None or not found.offset:  # whoever begins again at 0 begins a new upload, as this may be broken
            self._restart()
        else:
            self._session = found
            self._advanced(found.offset)
            self._note()

    def _changes_form(self) -> bool:
        """Take another form, once; say whether there was one left."""
        if self._has_changed_form:
            return False
        self._has_changed_form = True
        self._form = _OTHER_FORM[self._form]
        self._restart()
        return True

    def _restart(self) -> None:
        """Begin from the first byte, in a new upload."""
        if self._session is not None:
            self._uploads.cancel(self._session)
        self._session = None
        self._forget()

    def _advanced(self, offset: int) -> None:
        if offset > self._furthest:
            self._furthest, self._attempt = offset, 0

    def _is_stored(self) -> bool:
        return is_present(self._registry, self._repository, self._body.descriptor)

    def _require_right(self, response: httpx.Response) -> None:
        """Hold what the registry says of the blob against what it is; raises RegistryError."""
        wanted = self._body.descriptor.digest
        said = response.headers.get("Docker-Content-Digest")
        kept = self._kept()
        length = "" if kept is None else kept.headers.get("Content-Length", "")
        if kept is not None and (kept.status_code == 404 or (length.isdigit() and int(length) != self._size)):
            raise RegistryError(
                f"{self._connection.host} stored {self._uploads.what}, and then has {length or 'nothing'} of its bytes",
                hint="push again; if it stays so, the registry's storage is damaged",
            )
        if said is not None and said != str(wanted) and self._read_back() != wanted:
            raise RegistryError(f"{self._connection.host} stored {self._uploads.what} as {said}", hint="push again")

    def _kept(self) -> httpx.Response | None:
        """Ask for the blob that was stored just now; a registry whose parts tell each other late is asked again."""
        for attempt in range(_LATE_ANSWERS):
            found = ask_for(self._registry, self._repository, self._body.descriptor.digest)
            if found is None or found.status_code != 404 or not self._connection.wait_before(attempt):
                break
        return found

    def _read_back(self) -> Digest | None:
        try:
            with self._registry.open_blob(self._repository, self._body.descriptor) as stream:
                return digest_of_stream(stream)[0]
        except ArtifactError:
            return None

    def _give_up(self, failure: RegistryError) -> None:
        if self._session is not None:
            self._uploads.cancel(self._session)
        self._forget()
        raise failure

    def _taken_up(self) -> Session | None:
        """Return the upload of an earlier run, where the registry still knows it."""
        location = None if self._journal is None or self._form == "put" else self._journal.location(self._place)
        if location is None:
            return None
        try:
            found = self._uploads.find(Session(self._connection.safe(location)))
        except RegistryError:
            found = None
        if found is None or not found.offset:
            self._forget()
            return None
        self._resumed_at = found.offset
        return replace(found)

    def _note(self) -> None:
        if self._journal is not None and self._session is not None and self._form != "put":
            self._journal.note(self._place, self._session.location, self._session.offset)

    def _forget(self) -> None:
        if self._journal is not None:
            self._journal.forget(self._place)
