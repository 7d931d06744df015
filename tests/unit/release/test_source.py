"""Where a release is taken from, and which digest it has to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lj_image.catalog.release import Release
from lj_image.config import Config, ConfigFile, EndpointsConfig
from lj_image.errors import ArtifactError, PublishError, UsageError
from lj_image.oci.content import Content, content_of
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.registry.client import FetchedManifest
from lj_image.registry.faults import RegistryError
from lj_image.release.record import Built, Pushed, Record, Verified
from lj_image.release.source import content_from, promises, source_of
from samples.images import image

NOW = "2025-02-01T00:00:00+00:00"
IMAGE_ID = "sha256:" + "1" * 64
OTHER = "sha256:" + "b" * 64
REPOSITORY = "egslingjun/training-nv-pytorch"


class Source:
    """A registry that has one manifest under a tag and its digest, as far as a source is asked."""

    host = "source.example"
    connection = None

    def __init__(self, content: Content) -> None:
        self.content = content
        self.fault: RegistryError | None = None

    def __call__(self, host: str, *, intent: str) -> Any:
        assert (host, intent) == (self.host, "pull")
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close nothing."""

    def head(self, repository: str, wanted: str) -> Digest | None:
        if self.fault is not None:
            raise self.fault
        held = self.content.root.descriptor.digest
        return held if repository == REPOSITORY and wanted in ("25.02-serverless", str(held)) else None

    def manifest(self, repository: str, wanted: str) -> FetchedManifest:
        if self.head(repository, wanted) is None:
            raise RegistryError("there is no such manifest", status=404, code="MANIFEST_UNKNOWN")
        root = self.content.root
        return FetchedManifest(
            root.content, Descriptor(root.descriptor.media_type, root.descriptor.digest, len(root.content))
        )


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(content_of(image(tmp_path / "blobs")))


@pytest.fixture
def held(source: Source) -> str:
    return str(source.content.root.descriptor.digest)


Take = Callable[..., tuple[Content, str, list[str]]]


@pytest.fixture
def take(release: Release, config: Config, source: Source) -> Take:
    def call(**options: Any) -> tuple[Content, str, list[str]]:
        said: list[str] = []
        with content_from(
            source.host, release, release.tag, config, say=said.append, open_registry=source, **options
        ) as found:
            return found.content, found.proof, said

    return call


def built(**changes: Any) -> Built:
    return replace(Built(IMAGE_ID, "x:t", "i", "p", "l", "oci", "base", NOW, 1.0, 1), **changes)


def record_of(*, verified: bool = True, **changes: Any) -> Record:
    proof = Verified(IMAGE_ID, verified, 3, (), {}, NOW)
    return replace(Record("training-nv-pytorch", "25.02", "serverless", built(), proof), **changes)


def pushed(digest: str, **changes: Any) -> Pushed:
    return replace(Pushed("r/x:t", "r/x:t", digest, IMAGE_ID, "public", None, True, NOW), **changes)


@pytest.mark.parametrize(
    ("named", "reference"),
    [
        ("public", f"egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com/{REPOSITORY}"),
        ("cn-beijing", f"rewritten.example/cn-beijing/{REPOSITORY}"),  # a rule of the config holds for sources, too
        ("staging", f"staging.example:5000/team/{REPOSITORY}"),
        ("localhost:5000", f"localhost:5000/{REPOSITORY}"),
        ("localhost", f"localhost/{REPOSITORY}"),
        ("other.example/a/b/", f"other.example/a/b/{REPOSITORY}"),
        (f"other.example/a/{REPOSITORY}", f"other.example/a/{REPOSITORY}"),
    ],
)
def test_a_source_is_a_region_public_a_place_of_the_config_or_a_registry(
    release: Release, config: Config, named: str, reference: str
) -> None:
    rewrite = {"acs-registry-vpc.{region}.cr.aliyuncs.com": "rewritten.example/{region}"}
    endpoints = EndpointsConfig(rewrite=rewrite, places={"staging": "staging.example:5000/team"})
    found = source_of(named, release, release.tag, replace(config, values=ConfigFile(endpoints=endpoints)))
    assert str(found) == f"{reference}:25.02-serverless"


def test_an_unknown_source_names_the_closest(release: Release, config: Config) -> None:
    with pytest.raises(UsageError, match="unknown place 'cn-bejing'") as raised:
        source_of("cn-bejing", release, release.tag, config)
    assert "cn-beijing" in (raised.value.hint or "")
    assert "HOST" in (raised.value.hint or "")


def test_without_a_record_the_tag_decides_and_that_is_told(take: Take, held: str) -> None:
    content, proof, said = take()
    assert str(content.root.descriptor.digest) == held
    assert proof == "unknown"
    assert held in said[0]
    assert "no record" in said[0]


def test_a_digest_that_is_asked_for_decides_without_a_record(take: Take, held: str) -> None:
    content, _, said = take(digest=Digest.parse(held))
    assert (str(content.root.descriptor.digest), said) == (held, [])
    with pytest.raises(ArtifactError, match="no such manifest"):
        take(digest=Digest.parse(OTHER))


def test_the_records_digest_decides_whatever_the_tag_holds(take: Take, held: str) -> None:
    content, proof, said = take(record=record_of(pushed=(pushed(held),)))
    assert (str(content.root.descriptor.digest), proof, said) == (held, "passed", [])
    with pytest.raises(ArtifactError, match=rf"does not have the image of the record, {OTHER}; the tag holds {held}"):
        take(record=record_of(pushed=(pushed(OTHER),)))


def test_of_several_digests_of_the_image_the_one_that_is_there_is_taken(take: Take, held: str) -> None:
    content, _, _ = take(record=record_of(pushed=(pushed(held), pushed(OTHER, reference="s/x:t"))))
    assert str(content.root.descriptor.digest) == held
    content, _, _ = take(record=record_of(built=built(manifest=held)))
    assert str(content.root.descriptor.digest) == held


def test_a_digest_that_the_record_does_not_know_is_refused(take: Take, held: str) -> None:
    with pytest.raises(PublishError, match=f"{held} is not what the record of .* has: {OTHER}"):
        take(record=record_of(pushed=(pushed(OTHER),)), digest=Digest.parse(held))


def test_a_record_without_proof_is_refused_unless_that_is_wished(take: Take, held: str) -> None:
    record = record_of(verified=False, built=built(manifest=held))
    with pytest.raises(PublishError, match="not verified") as raised:
        take(record=record)
    assert "--no-verify" in (raised.value.hint or "")
    _, proof, _ = take(record=record, verify=False)
    assert proof == "none"


def test_a_build_that_is_not_the_release_does_not_count() -> None:
    before = pushed(OTHER, image_id="sha256:" + "2" * 64)
    for changes in ({"partial": True}, {"overridden": {"vllm": "0"}}):
        record = record_of(built=built(manifest="sha256:" + "c" * 64, **changes), pushed=(before,))
        assert [str(item.digest) for item in promises(record)] == [OTHER]
    assert promises(record_of(pushed=(before,))) == ()
    assert promises(None) == ()


def test_a_source_that_does_not_answer_is_told_as_the_source(take: Take, source: Source, held: str) -> None:
    source.fault = RegistryError("source.example refuses the connection", hint="is it running?")
    for options in ({}, {"record": record_of(pushed=(pushed(held),))}):
        with pytest.raises(ArtifactError, match=r"the source cannot be read: source\.example refuses"):
            take(**options)
