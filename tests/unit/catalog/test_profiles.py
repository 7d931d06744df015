from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.endpoint_schema import ProfileEntry
from lj_image.catalog.profiles import built_in, capabilities_of, kind_of_host, size_bytes
from lj_image.errors import ManifestError
from lj_image.oci.capabilities import Capabilities
from samples import tiny

Write = Callable[..., Catalog]
PUBLIC = "  public: {host: public.example}\n"


def taken(write: Write, profile: str | None, host: str = "public.example", own: str = "") -> Capabilities:
    family = write(image=tiny.IMAGE.replace(PUBLIC, PUBLIC + own)).family("tiny")
    return capabilities_of(family, profile, host, ("endpoints", "public", "host"))


def test_every_kind_that_the_tool_brings_can_be_resolved(write_catalog: Write) -> None:
    for name in built_in():
        assert taken(write_catalog, name).profile == name


def test_a_profile_can_say_whatever_there_is_to_say_of_a_registry() -> None:
    said = {
        "chunk": "chunk_bytes",
        "largest_layer": "largest_layer_bytes",
        "largest_manifest": "largest_manifest_bytes",
    }
    keys = {said.get(key, key) for key in ProfileEntry.model_fields if key != "like"}
    assert keys == {item.name for item in fields(Capabilities)} - {"profile"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acr", {"attestations": False}),  # refused since August 2026
        ("ecr", {"chunk_bytes": 10 * 2**20, "last_chunk_in_put": True}),
        ("ecr-public", {"chunk_bytes": 10 * 2**20, "last_chunk_in_put": True, "mount": False}),
        ("gar", {"upload": "put"}),
        ("ghcr", {"upload": "put", "chunk_bytes": 4 * 2**20, "largest_layer_bytes": 10 * 10**9}),
        ("zot", {"media_types": "oci"}),
        ("quay", {"upload": "stream"}),
    ],
)
def test_a_kind_takes_and_refuses_what_its_registry_does(
    write_catalog: Write, name: str, expected: dict[str, object]
) -> None:
    found = taken(write_catalog, name)
    assert {key: getattr(found, key) for key in expected} == expected


def test_a_host_gives_its_kind_away() -> None:
    hosts = {
        "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com": "acr",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com": "ecr",
        "public.ecr.aws": "ecr-public",
        "europe-west4-docker.pkg.dev": "gar",
        "GHCR.io": "ghcr",
        "docker.io": "dockerhub",
        "team.azurecr.io": "azure",
        "localhost:5000": None,
        "ghcr.io.example": None,
    }
    assert {host: kind_of_host(host) for host in hosts} == hosts


def test_no_host_is_of_two_kinds() -> None:
    patterns = [pattern for entry in built_in().values() for pattern in entry.hosts]
    assert len(patterns) == len(set(patterns))


def test_a_host_of_no_kind_has_nothing_particular(write_catalog: Write) -> None:
    assert taken(write_catalog, None) == Capabilities()


def test_a_name_is_stronger_than_a_host(write_catalog: Write) -> None:
    assert taken(write_catalog, "harbor", "ghcr.io").profile == "harbor"


def test_a_profile_of_ones_own_says_what_differs_from_another(write_catalog: Write) -> None:
    own = (
        "  profiles:\n    ours: {like: base, zstd: false}\n    base: {like: ghcr, chunk: 2MiB, immutable_tags: true}\n"
    )
    found = taken(write_catalog, "ours", own=own)
    assert (found.profile, found.upload, found.chunk_bytes) == ("ours", "put", 2 * 2**20)
    assert (found.zstd, found.immutable_tags) == (False, True)


@pytest.mark.parametrize(
    ("own", "asked", "message", "hint"),
    [
        ("", "arc", "no profile 'arc'", "acr"),
        ("  profiles: {ours: {like: habor}}\n", "ours", "no profile 'habor'", "harbor"),
        ("  profiles: {a: {like: b}, b: {like: a}}\n", "a", "the profile 'a' is like itself", "another"),
        ("  profiles: {a: {like: a}}\n", "a", "the profile 'a' is like itself", "another"),
        ("  profiles: {acr: {zstd: false}}\n", "acr", "'acr' comes with the tool", "like: acr"),
    ],
)
def test_a_profile_that_there_is_not_is_told_with_its_place(
    write_catalog: Write, own: str, asked: str, message: str, hint: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        taken(write_catalog, asked, own=own)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.location is not None
    assert caught.value.location.line is not None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{chunks: 4MiB}", "unknown key 'chunks'"),
        ("{chunk: 4}", "read as the number 4"),
        ("{chunk: 4 MiB}", "is not written as it should be"),
        ("{upload: patch}", "upload"),
        ("{zstd: sometimes}", "zstd"),
    ],
)
def test_a_key_or_value_that_a_profile_does_not_have_is_told_with_its_line(
    write_catalog: Write, written: str, message: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        taken(write_catalog, "ours", own=f"  profiles:\n    ours: {written}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1B", 1), ("10GB", 10_000_000_000), ("4MiB", 4_194_304), ("16KiB", 16_384), ("2GiB", 2**31), ("5MB", 5_000_000)],
)
def test_a_size_is_in_the_units_of_iec_or_of_ten(text: str, expected: int) -> None:
    assert size_bytes(text) == expected
