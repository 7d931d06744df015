"""What is said about an image goes with it, at a registry that lists referrers and at one that knows only tags."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mirroring import RELEASE, REPOSITORY, TAG, Machine, rewriting

from lj_image.errors import ArtifactError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Content, content_of
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.reference import Reference
from lj_image.registry.client import Registry as Client
from lj_image.registry.content import content_at
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.publishing.publish import publish_content
from lj_image.registry.referrers import referrers_of, referrers_tag, with_referrers
from lj_image.registry.transfer.delivery import Destination
from samples.images import image, layers_of
from samples.signed import MATERIALS, SIGNATURE, about
from standins.faults import faulty
from standins.registries import PROGRAMS, Registry, running

pytestmark = pytest.mark.registry


@pytest.fixture(params=PROGRAMS)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    folder = tmp_path / "registry"
    folder.mkdir()
    with running(folder, program=request.param) as found:
        yield found


@pytest.fixture
def signed(tmp_path: Path) -> Content:
    """An image, a signature of it, its bill of materials, and a signature of that."""
    content = content_of(image(tmp_path / "blobs", layers_of(secrets.token_hex(4))))
    materials = about(content.root.descriptor, MATERIALS, b"{}")
    return replace(
        content,
        referrers=(about(content.root.descriptor), materials, about(materials.root.descriptor, SIGNATURE, b"too")),
    )


def publish(client: Client, repository: str, content: Content, tag: str = TAG) -> Placed:
    (placed,) = publish_content(content, [Place(Destination("here", client, repository), (tag,))])
    return placed


def digests(items: tuple[Descriptor, ...]) -> list[str]:
    return sorted(str(item.digest) for item in items)


def test_all_that_is_said_of_an_image_is_published_and_read_back(registry: Registry, signed: Content) -> None:
    with Client(registry.address, intent="push") as client:
        assert publish(client, "a/signed", signed).state == "published"
        found = with_referrers(
            client, "a/signed", content_at(client, Reference.parse(f"{registry.address}/a/signed:{TAG}"))
        )
        listed = referrers_of(client, "a/signed", signed.root.descriptor.digest)
    assert {item.root.content for item in found.referrers} == {item.root.content for item in signed.referrers}
    assert digests(listed) == sorted(str(item.root.descriptor.digest) for item in signed.referrers[:2])
    assert {item.artifact_type for item in listed} == {SIGNATURE, MATERIALS}


def test_a_registry_without_the_api_keeps_them_under_the_subjects_tag(tmp_path: Path, signed: Content) -> None:
    with running(tmp_path) as registry, Client(registry.address, intent="push") as client:
        publish(client, "a/signed", signed)
        publish(client, "a/signed", signed, "once-more")
        assert registry.get(f"a/signed/referrers/{signed.root.descriptor.digest}").status_code == 404
        index = registry.manifest("a/signed", referrers_tag(signed.root.descriptor.digest))
    assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    assert [(item["artifactType"], item["annotations"]) for item in index["manifests"]] == [
        (SIGNATURE, {"org.example.said": "signed"}),
        (MATERIALS, {"org.example.said": "{}"}),
    ]


def test_a_signature_that_came_later_is_brought_to_where_the_image_is(registry: Registry, signed: Content) -> None:
    subject = signed.root.descriptor
    with Client(registry.address, intent="push") as client:
        publish(client, "a/signed", replace(signed, referrers=()))
        assert referrers_of(client, "a/signed", subject.digest) == ()
        assert publish(client, "a/signed", signed).state == "already"
        assert len(referrers_of(client, "a/signed", subject.digest)) == 2


def test_they_are_there_before_the_tag_is(tmp_path: Path, signed: Content) -> None:
    with running(tmp_path) as real, faulty(real.address) as proxy:
        with Client(proxy.address, intent="push") as client:
            publish(client, "a/signed", signed)
        puts = [item["path"] for item in proxy.requests("manifest-put")]
    assert puts[-1].endswith(f"/manifests/{TAG}")
    assert len(puts) == 1 + 3 + 3 + 1  # the image, what is said of it, the subjects' tags, the tag


def test_a_kind_of_registry_that_refuses_them_gets_none_and_it_is_told(registry: Registry, signed: Content) -> None:
    with Client(registry.address, intent="push", capabilities=Capabilities("acr", referrers=False)) as client:
        placed = publish(client, "a/signed", signed)
        assert referrers_of(client, "a/signed", signed.root.descriptor.digest) == ()
    assert (placed.state, placed.notes) == (
        "published",
        ("without its 3 referrers: a registry of the kind acr refuses them",),
    )


def test_one_that_is_refused_is_left_out_and_told(tmp_path: Path, signed: Content) -> None:
    with running(tmp_path) as real, Client(real.address, intent="push") as client:
        publish(client, "a/signed", replace(signed, referrers=()))
        with faulty(real.address, "status:403:1:manifest-put") as proxy, Client(proxy.address, intent="push") as behind:
            placed = publish(behind, "a/signed", signed)
        listed = referrers_of(client, "a/signed", signed.root.descriptor.digest)
    assert [item.artifact_type for item in listed] == [MATERIALS]
    assert placed.error is None
    assert len(placed.notes) == 1
    assert placed.notes[0].startswith(f"without the referrer {signed.referrers[0].root.descriptor.digest}, since it is")


def test_what_is_about_another_form_of_the_image_stays_behind(tmp_path: Path, signed: Content) -> None:
    takes = Capabilities("old", media_types="docker")
    with running(tmp_path) as real, Client(real.address, intent="push", capabilities=takes) as client:
        placed = publish(client, "a/signed", signed)
        assert placed.digest is not None
        assert referrers_of(client, "a/signed", placed.digest) == ()
    assert placed.notes[-1] == "without 3 referrers of what is published here in another form"


def test_a_tag_of_that_name_that_is_no_index_is_not_written_over(tmp_path: Path, signed: Content) -> None:
    tag = referrers_tag(signed.root.descriptor.digest)
    other = content_of(image(tmp_path / "other", cmd=("other",)))
    with running(tmp_path) as real, Client(real.address, intent="push") as client:
        publish(client, "a/signed", other, tag)
        placed = publish(client, "a/signed", signed)
        assert (placed.state, real.digest("a/signed", TAG)) == ("failed", None)
        with pytest.raises(ArtifactError, match="no index of referrers"):
            referrers_of(client, "a/signed", signed.root.descriptor.digest)
    assert "is no index of referrers" in str(placed.error)


def test_a_promoted_release_takes_its_signatures_along(registry: Registry, tmp_path: Path, signed: Content) -> None:
    with Client(registry.address, intent="push") as client:
        publish(client, REPOSITORY, signed)
    folder = tmp_path / "region"
    folder.mkdir()
    with running(folder) as region:
        machine = Machine(tmp_path / "machine", rewriting(region.address), {"staging": registry.address})
        done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing", "--json")
        assert done.code == 0, done.errors
        note = json.loads(done.output)["targets"][0]["notes"]
        # A region is ACR by its profile, which takes none.
        assert note == ["without its 3 referrers: a registry of the kind acr refuses them"]
