"""What a registry does that deletes tags by themselves, as the specification says, and what can go wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from lj_image.catalog.release import Endpoint
from lj_image.errors import ArtifactError, PartlyPublishedError, PublishError
from lj_image.oci.capabilities import Capabilities
from lj_image.registry.client import Registry
from lj_image.registry.tags import delete_tag, tags_of
from lj_image.release.record import Pushed, Record, Records
from lj_image.release.references import Target
from lj_image.release.retract import Retraction, error_of, look, retract
from lj_image.release.status import Known

HOST = "r.example"
OURS, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
REFERENCE = f"{HOST}/team/tiny:25.02"


@dataclass
class Tags:
    """A registry that has tags, and deletes them one by one."""

    tags: dict[str, str]
    statuses: dict[str, int] = field(default_factory=dict)
    """Method -> what it answers instead."""
    keeps: bool = False
    asked: list[str] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/v2/team/tiny/")
        self.asked.append(f"{request.method} {path}")
        if request.method in self.statuses:
            status = self.statuses[request.method]
            return httpx.Response(status, json={"errors": [{"code": "DENIED", "message": "no"}]})
        if path == "tags/list":
            names = sorted(self.tags)
            if "last" in request.url.params:
                return httpx.Response(200, json={"name": "team/tiny", "tags": names[1:]})
            link = '</v2/team/tiny/tags/list?last=x&n=1>; rel="next"'
            return httpx.Response(200, json={"name": "team/tiny", "tags": names[:1]}, headers={"Link": link})
        tag = path.rpartition("/")[2]
        if tag not in self.tags:
            return httpx.Response(404, json={"errors": [{"code": "MANIFEST_UNKNOWN"}]})
        if request.method == "DELETE":
            if not self.keeps:
                del self.tags[tag]
            return httpx.Response(202)
        return httpx.Response(200, headers={"Docker-Content-Digest": self.tags[tag]})

    def open(self, host: str, capabilities: Capabilities) -> Registry:
        return Registry(host, transport=httpx.MockTransport(self.answer), credentials=lambda _: None)


def target(tag: str = "25.02") -> Target:
    reference = f"{HOST}/team/tiny:{tag}"
    return Target(Endpoint(HOST, "public", None, "team/tiny"), reference, reference)


def known() -> Known:
    return Known((OURS,), {REFERENCE: OURS})


@pytest.fixture
def records(tmp_path: Path) -> Records:
    found = Records(tmp_path, "tiny")
    pushed = Pushed(REFERENCE, REFERENCE, OURS, OURS, "public", None, True, "2025-02-01", ("latest",))
    found.update("25.02-open", lambda _: Record("tiny", "25.02", "open", pushed=(pushed,)))
    return found


def run(tags: Tags, records: Records, tag: str = "25.02", *, force: bool = False) -> Retraction:
    found = look((target(tag),), known(), "25.02", force=force, open_registry=tags.open)
    (done,) = retract(found, records, "25.02-open", force=force, open_registry=tags.open)
    return done


def test_a_tag_goes_alone_where_tags_can(records: Records) -> None:
    tags = Tags({"25.02": OURS, "latest": OURS})
    assert run(tags, records, "latest").state == "retracted"
    assert tags.tags == {"25.02": OURS}
    record = records.read("25.02-open")
    assert record is not None
    assert [(item.reference, item.tags) for item in record.pushed] == [(REFERENCE, ())]
    assert [item.reference for item in record.retracted] == [f"{HOST}/team/tiny:latest"]


def test_a_record_that_was_written_before_has_nothing_retracted(records: Records) -> None:
    path = records.path("25.02-open")
    text = path.read_text()
    assert '"retracted": []' in text
    path.write_text(text.replace(',\n  "retracted": []', ""))
    record = records.read("25.02-open")
    assert record is not None
    assert record.retracted == ()


def test_a_refusal_is_told_and_the_record_stays(records: Records) -> None:
    done = run(Tags({"25.02": OURS}, {"DELETE": 403}), records)
    assert done.state == "failed"
    assert "does not let this account" in done.message
    record = records.read("25.02-open")
    assert record is not None
    assert len(record.pushed) == 1


def test_a_registry_that_says_done_and_is_not_is_not_believed(records: Records) -> None:
    done = run(Tags({"25.02": OURS}, keeps=True), records)
    assert (done.state, done.message) == ("failed", "the registry says that the tag is deleted, and still has it")


def test_a_tag_that_moves_between_look_and_deed_stays(records: Records) -> None:
    tags = Tags({"25.02": OURS})
    found = look((target(),), known(), "25.02", force=False, open_registry=tags.open)
    tags.tags["25.02"] = OTHER
    (done,) = retract(found, records, "25.02-open", force=False, open_registry=tags.open)
    assert done.state == "refused"
    assert OTHER in done.message
    assert tags.tags == {"25.02": OTHER}


def test_nothing_is_deleted_where_nothing_was_found(records: Records) -> None:
    tags = Tags({"25.02": OTHER})
    assert run(tags, records).state == "refused"
    assert not any(line.startswith("DELETE") for line in tags.asked)


def test_a_registry_that_cannot_be_asked_fails_alone() -> None:
    (found,) = look((target(),), known(), "25.02", force=False, open_registry=Tags({}, {"HEAD": 403, "GET": 403}).open)
    assert found.state == "failed"


def test_the_error_says_whether_all_or_some_places_keep_the_tag() -> None:
    kept = Retraction(target(), "refused", OTHER, "why", "do this")
    gone = Retraction(target(), "retracted", OURS)
    assert error_of((gone,), "25.02") is None
    assert type(error_of((kept,), "25.02")) is PublishError
    partly = error_of((gone, kept), "25.02")
    assert isinstance(partly, PartlyPublishedError)
    assert (partly.exit_code, partly.hint) == (3, "do this")


def test_tags_are_listed_page_by_page() -> None:
    tags = Tags({"a": OURS, "b": OURS, "c": OTHER})
    with tags.open(HOST, Capabilities()) as registry:
        assert list(tags_of(registry, "team/tiny")) == ["a", "b", "c"]


@pytest.mark.parametrize("content", [b"[]", b'{"tags": "x"}', b"<html>"])
def test_a_list_of_tags_that_is_none_is_an_error(content: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    with (
        Registry(HOST, transport=transport, credentials=lambda _: None) as registry,
        pytest.raises(ArtifactError, match="tags"),
    ):
        list(tags_of(registry, "team/tiny"))


def test_a_deletion_asks_for_a_login_that_may_delete() -> None:
    scopes: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "auth.example":
            scopes.append(request.url.params["scope"])
            return httpx.Response(200, json={"token": "t"})
        if "Authorization" not in request.headers:
            challenge = 'Bearer realm="https://auth.example/token",service="r.example"'
            return httpx.Response(401, headers={"WWW-Authenticate": challenge})
        return httpx.Response(202)

    transport = httpx.MockTransport(answer)
    with Registry(HOST, transport=transport, credentials=lambda _: None) as registry:
        assert delete_tag(registry, "team/tiny", "25.02")
    assert scopes == ["repository:team/tiny:delete,pull"]
