"""One blob to a registry that misbehaves: a real registry behind a proxy that cuts, refuses, lags and lies.

What was sent is what the proxy has counted; what is there is what the registry behind it says.
"""

from __future__ import annotations

import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lj_image.errors import LjImageError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import descriptor_of
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError
from lj_image.registry.publishing.documents import OneReader
from lj_image.registry.uploading.journal import Journal
from lj_image.registry.uploading.upload import Arrival, bring_blob, upload
from samples.attested import blob as blob_of
from standins.faults import Faulty, faulty
from standins.registries import Registry as Real
from standins.registries import running

MIB = 1024 * 1024
CHUNK = MIB
SIZE = 4 * MIB + 4321
CONTENT = random.Random(5).randbytes(SIZE)
BLOB = blob_of(CONTENT, "application/octet-stream")
DIGEST = str(BLOB.descriptor.digest)

Misbehaving = Callable[..., Faulty]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with running(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture
def repository() -> str:
    return f"faults/{secrets.token_hex(4)}"


@pytest.fixture
def misbehaving(real: Real) -> Iterator[Misbehaving]:
    with ExitStack() as exits:
        yield lambda *faults, **options: exits.enter_context(faulty(real.address, *faults, **options))


def opened(
    proxy: Faulty, login: Credentials | None = None, *, quick: bool = True, idle_s: float = 60, **takes: object
) -> Registry:
    return Registry(
        Access(proxy.address, patience=Patience(attempts=4, idle_s=idle_s)),
        intent="push",
        capabilities=Capabilities(**{"chunk_bytes": CHUNK, **takes}),  # type: ignore[arg-type]
        credentials=lambda _: login,
        sleep=(lambda wait_s: time.sleep(min(wait_s, 0.05))) if quick else None,
    )


def bring(registry: Registry, repository: str, blob: Blob = BLOB, **options: object) -> Arrival:
    with registry:
        return bring_blob(registry, repository, OneReader(blob), **options)  # type: ignore[arg-type]


def is_stored(real: Real, repository: str) -> bool:
    found = real.get(f"{repository}/blobs/{DIGEST}", "HEAD")
    return found.status_code == 200 and found.headers["Content-Length"] == str(SIZE)


def test_a_chunk_that_is_cut_goes_on_where_the_registry_is(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving(f"drop-after:{MIB // 2}:1:keep", resumable=True)
    arrival = bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE
    assert arrival.sent_bytes >= SIZE


def test_a_chunk_that_is_cut_and_lost_is_sent_again_and_no_other(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving(f"drop-after:{MIB // 2}:1:lose", resumable=True)
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert SIZE < proxy.received_bytes <= SIZE + CHUNK


def test_where_a_cut_ends_the_upload_the_blob_begins_anew(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    """Distribution 2.8 cannot say where an upload stands once a chunk was cut."""
    proxy = misbehaving(f"drop-after:{MIB // 2}:1")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + CHUNK
    assert len(proxy.requests("upload-start")) == 2


def test_what_is_cut_each_time_ends_with_its_reason(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving(f"drop-after:{MIB // 2}:0:lose", resumable=True)
    with pytest.raises(RegistryError, match="connection"):
        bring(opened(proxy), repository)
    assert not is_stored(real, repository)
    assert len(proxy.requests("upload-patch")) == 4, "as many as the attempts without one new byte"


def test_an_answer_that_is_lost_sends_nothing_twice(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("lost-response:1:upload-patch", resumable=True)
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE


def test_a_lost_answer_to_the_end_is_an_end(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("lost-response:1:upload-put")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE
    assert len(proxy.requests("upload-put")) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 408])
@pytest.mark.parametrize("where", ["upload-start", "upload-patch", "upload-put", "blob-head"])
def test_what_fails_for_now_is_tried_again(
    misbehaving: Misbehaving, real: Real, repository: str, status: int, where: str
) -> None:
    proxy = misbehaving(f"status:{status}:2:{where}", resumable=True)
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + 2 * CHUNK


def test_what_fails_for_ever_ends(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("status:500:0:upload-put", resumable=True)
    with pytest.raises(RegistryError, match="500"):
        bring(opened(proxy), repository)
    assert not is_stored(real, repository)
    assert len(proxy.requests("upload-delete")) == 1, "what nobody goes on with is let go"


@pytest.mark.parametrize("where", ["upload-patch", "upload-start"])
def test_whoever_asks_for_patience_gets_it(misbehaving: Misbehaving, repository: str, real: Real, where: str) -> None:
    proxy = misbehaving(f"too-many:1:2:{where}", resumable=True)
    began = time.monotonic()
    bring(opened(proxy, quick=False), repository)
    assert is_stored(real, repository)
    assert proxy.totals["early_retries"] == 0
    assert time.monotonic() - began >= 2


def test_a_token_that_runs_out_in_an_upload_is_renewed_and_the_upload_goes_on(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving("token:300", f"expire-token:{2 * MIB}", resumable=True, user="robot:secret")
    bring(opened(proxy, Credentials("robot", "secret")), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + CHUNK
    assert len(proxy.requests("upload-start")) <= 2, "the first one asks for the login"


def test_a_token_that_lives_shorter_than_it_says_is_renewed(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving("token:0.3", "token-claims:300", f"slow:{4 * MIB}", resumable=True, user="robot:secret")
    bring(opened(proxy, Credentials("robot", "secret")), repository)
    assert is_stored(real, repository)


def test_a_wrong_password_is_not_tried_again(misbehaving: Misbehaving, repository: str) -> None:
    proxy = misbehaving("token:300", user="robot:secret")
    with pytest.raises(LjImageError) as caught:
        bring(opened(proxy, Credentials("robot", "wr0ng")), repository)
    assert "wr0ng" not in str(caught.value) + str(caught.value.hint)
    assert proxy.address in str(caught.value)
    assert len(proxy.requests("token-get") + proxy.requests("token-post")) <= 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_does_not_say_what_it_has_is_sent_the_blob(
    misbehaving: Misbehaving, real: Real, repository: str, status: int
) -> None:
    proxy = misbehaving(f"status:{status}:2:blob-head")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)


def test_a_stalled_registry_is_given_up_and_taken_up_again(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving(f"stall:{MIB // 2}:600", resumable=True)
    bring(opened(proxy, idle_s=1), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + 2 * CHUNK


def test_a_registry_that_stalls_each_time_fails(misbehaving: Misbehaving, repository: str) -> None:
    proxy = misbehaving(f"stall:{MIB // 2}:600:0", resumable=True)
    with pytest.raises(RegistryError):
        bring(opened(proxy, idle_s=0.3), repository)


def test_another_digest_in_the_answer_is_held_against_the_bytes(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving("wrong-digest:1:upload-put")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert len(proxy.requests("blob-get")) == 1, "the registry's own bytes decide"


def test_a_blob_that_is_damaged_on_the_way_is_sent_once_more(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    proxy = misbehaving("corrupt:1")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == 2 * SIZE


def test_a_way_that_damages_everything_is_no_way(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("corrupt:0")
    with pytest.raises(RegistryError, match="digest"):
        bring(opened(proxy), repository)
    assert not is_stored(real, repository)
    assert proxy.received_bytes == 2 * SIZE, "once more, and no more"


def test_what_the_registry_has_not_taken_is_sent_again(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving(f"range-behind:{MIB // 4}", resumable=True)
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE + MIB // 4


def test_a_range_that_stands_still_is_not_believed(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("range-stuck")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE


def test_a_relative_location_keeps_its_query(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    bring(opened(misbehaving("relative-location")), repository)
    assert is_stored(real, repository)


def test_a_login_never_goes_to_another_host(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("token:300", "foreign-location", user="robot:secret")
    bring(opened(proxy, Credentials("robot", "secret")), repository)
    assert is_stored(real, repository)
    assert proxy.totals["authorization_leaks"] == 0


@pytest.mark.parametrize("fault", ["refuse-mount", "status:400:1:mount", "status:401:9:mount", "status:404:1:mount"])
def test_what_cannot_be_mounted_is_sent(misbehaving: Misbehaving, real: Real, repository: str, fault: str) -> None:
    bring(opened(misbehaving()), f"{repository}/before")
    proxy = misbehaving(fault)
    arrival = bring(opened(proxy), repository, origin=f"{proxy.address}/{repository}/before")
    assert arrival.way == "sent"
    assert is_stored(real, repository)


def test_what_another_repository_has_is_mounted(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    bring(opened(misbehaving()), f"{repository}/before")
    proxy = misbehaving()
    arrival = bring(opened(proxy), repository, origin=f"{proxy.address}/{repository}/before")
    assert (arrival.way, proxy.received_bytes) == ("mounted", 0)
    assert is_stored(real, repository)


def test_where_one_scope_alone_is_granted_nothing_is_mounted(
    misbehaving: Misbehaving, real: Real, repository: str
) -> None:
    bring(opened(misbehaving()), f"{repository}/before")
    proxy = misbehaving("token:300", "token-first-scope", user="robot:secret")
    registry = opened(proxy, Credentials("robot", "secret"))
    bring(registry, repository, origin=f"{proxy.address}/{repository}/before")
    assert is_stored(real, repository)


def test_a_smallest_chunk_is_obeyed(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving(f"chunk-min:{3 * MIB}")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    sizes = [entry["received"] for entry in proxy.requests("upload-patch")]
    assert all(size >= 3 * MIB for size in sizes[:-1])


def test_a_largest_chunk_changes_how_the_blob_goes(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving(f"chunk-max:{MIB // 2}")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + CHUNK


def test_a_session_that_is_lost_begins_anew(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("status:404:1:upload-patch")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert len(proxy.requests("upload-start")) == 2


@pytest.mark.parametrize("status", [404, 405])
def test_where_no_state_can_be_asked_the_blob_begins_anew(
    misbehaving: Misbehaving, real: Real, repository: str, status: int
) -> None:
    proxy = misbehaving(f"status:{status}:0:upload-status", f"drop-after:{MIB // 2}:1")
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes <= SIZE + CHUNK


@pytest.mark.parametrize(
    ("fault", "most_puts"), [("disk-full:2000000:507", 1), ("status:403:0:upload-put", 1), ("disk-full:2000000", 9)]
)
def test_a_full_disk_and_a_quota_end_it(
    misbehaving: Misbehaving, real: Real, repository: str, fault: str, most_puts: int
) -> None:
    proxy = misbehaving(fault)
    with pytest.raises(RegistryError) as caught:
        bring(opened(proxy), repository)
    assert caught.value.hint
    assert not is_stored(real, repository)
    assert len(proxy.requests("upload-put")) <= most_puts
    assert proxy.requests("upload-delete"), "what was sent is let go"


@pytest.mark.parametrize("form", ["chunks", "stream", "put"])
def test_each_form_of_upload_arrives(misbehaving: Misbehaving, real: Real, repository: str, form: str) -> None:
    proxy = misbehaving()
    bring(opened(proxy, upload=form), repository)
    assert is_stored(real, repository)
    ranges = [entry["content_range"] for entry in proxy.requests("upload-patch")]
    assert all(ranges) if form == "chunks" else not any(ranges)
    assert bool(ranges) == (form != "put")


def test_the_last_chunk_may_go_with_the_end(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving()
    bring(opened(proxy, last_chunk_in_put=True), repository)
    assert is_stored(real, repository)
    (end,) = proxy.requests("upload-put")
    assert end["received"] == SIZE - 4 * CHUNK


@pytest.mark.parametrize("form", ["put", "stream"])
def test_an_early_refusal_is_told_as_it_is(misbehaving: Misbehaving, real: Real, repository: str, form: str) -> None:
    """Not as the broken pipe that the sender meets."""
    proxy = misbehaving("status:403:0:upload-put+upload-patch")
    with pytest.raises(RegistryError) as caught:
        bring(opened(proxy, upload=form), repository)
    assert caught.value.status == 403


def test_a_blob_that_is_told_of_late_is_there(misbehaving: Misbehaving, real: Real, repository: str) -> None:
    proxy = misbehaving("status:404:3:blob-head")  # before the upload, and twice after it
    bring(opened(proxy), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE


@pytest.mark.parametrize("form", ["chunks", "stream"])
def test_a_cut_near_the_end_sends_next_to_nothing_again(
    misbehaving: Misbehaving, real: Real, repository: str, form: str
) -> None:
    proxy = misbehaving(f"drop-after:{SIZE * 99 // 100}:1:keep", resumable=True)
    arrival = bring(opened(proxy, upload=form, chunk_bytes=SIZE - 1), repository)
    assert is_stored(real, repository)
    assert proxy.received_bytes == SIZE
    assert arrival.sent_bytes <= SIZE * 1.02


KILLED = """
import os, signal, sys
from pathlib import Path
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.descriptor import descriptor_of
from lj_image.registry.client import Registry
from lj_image.registry.uploading.journal import Journal
from lj_image.registry.uploading.upload import bring_blob

address, repository, file, state, chunk = sys.argv[1:]
content = Path(file).read_bytes()


class Body:
    descriptor = descriptor_of(content, "application/octet-stream")

    def pieces(self, start, end):
        for at in range(start, end, 8192):
            if at > 0.99 * len(content):
                os.kill(os.getpid(), signal.SIGKILL)
            yield content[at : min(at + 8192, end)]


with Journal.open(Path(state)) as journal:
    registry = Registry(address, intent="push", capabilities=Capabilities(chunk_bytes=int(chunk)))
    bring_blob(registry, repository, Body(), journal=journal)
"""


@pytest.mark.parametrize("chunk_bytes", [MIB, SIZE // 64])
def test_a_process_that_is_killed_near_the_end_sends_next_to_nothing_again(
    misbehaving: Misbehaving, real: Real, repository: str, tmp_path: Path, chunk_bytes: int
) -> None:
    proxy = misbehaving(resumable=True)
    (tmp_path / "blob").write_bytes(CONTENT)
    state = tmp_path / "state"
    arguments = [proxy.address, repository, str(tmp_path / "blob"), str(state), str(chunk_bytes)]
    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not is_stored(real, repository)
    with Journal.open(state) as journal:  # type: ignore[union-attr]
        arrival = bring(opened(proxy, chunk_bytes=chunk_bytes), repository, journal=journal)
    assert is_stored(real, repository)
    assert arrival.resumed_at > 0.96 * SIZE - (chunk_bytes == MIB) * MIB
    assert arrival.sent_bytes <= 0.02 * SIZE
    assert proxy.received_bytes <= 1.02 * SIZE


def test_a_killed_upload_goes_on_from_the_journal(
    misbehaving: Misbehaving, real: Real, repository: str, tmp_path: Path
) -> None:
    proxy = misbehaving(f"drop-after:{MIB // 2}:0:keep", resumable=True)
    first = Journal.open(tmp_path)
    assert first is not None

    class Killed(BaseException):
        """The process ends."""

    def kill(at_byte: int) -> None:
        if at_byte >= 2 * MIB:
            raise Killed

    with pytest.raises(Killed), opened(proxy) as registry:
        upload(registry, repository, OneReader(BLOB), watch=kill, journal=first)
    first.close()
    second = Journal.open(tmp_path)
    assert second is not None
    with second, opened(proxy) as registry:
        arrival = upload(registry, repository, OneReader(BLOB), journal=second)
    assert is_stored(real, repository)
    assert arrival.resumed_at >= 2 * MIB
    assert proxy.received_bytes == SIZE


def test_a_journal_of_an_upload_that_is_gone_does_no_harm(
    misbehaving: Misbehaving, real: Real, repository: str, tmp_path: Path
) -> None:
    proxy = misbehaving()
    from lj_image.registry.uploading.journal import Place

    with Journal.open(tmp_path) as journal:  # type: ignore[union-attr]
        place = Place(proxy.address, repository, DIGEST, SIZE)
        journal.note(place, f"http://{proxy.address}/v2/{repository}/blobs/uploads/nobody?_state=x", 3 * MIB)
        with opened(proxy) as registry:
            upload(registry, repository, OneReader(BLOB), journal=journal)
        assert journal.location(place) is None
    assert is_stored(real, repository)


def test_an_empty_blob_arrives(misbehaving: Misbehaving, repository: str) -> None:
    proxy = misbehaving()
    empty = Blob(descriptor_of(b"", "application/octet-stream"), blob_of(b"", "x").open_at)
    assert bring(opened(proxy), repository, empty).way == "sent"
    assert bring(opened(proxy), repository, empty).way == "existing"
