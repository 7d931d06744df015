"""Images pushed to a real registry and read from it, and skopeo's word on them."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from lj_image.oci.content import content_of
from lj_image.oci.copying import copy_into
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.layout import Layout
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage
from lj_image.oci.validate import validate
from lj_image.registry.client import Registry
from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError
from lj_image.registry.image import read_image
from lj_image.registry.uploading.upload import upload
from samples.images import AMD64, ARM64, gzipped_in_parts, image, layers_of
from standins import registries
from standins.publishing import publish_at, push_image, push_index

USER, PASSWORD = "publisher", "publish-me"
HTPASSWD = "publisher:$2b$04$MxtvM4K9g6lGjIQpg79Gf.5jau2PtLZ1rOiSOinhpjC.x.IpuLp2a"  # of PASSWORD, by bcrypt


@pytest.fixture
def unique() -> str:
    return f"lj-image-test-{secrets.token_hex(4)}"


@pytest.fixture
def pushed_to(registry: str, unique: str) -> Reference:
    return Reference.parse(f"{registry}/{unique}/stack:25.02")


@pytest.fixture
def client(registry: str) -> Iterator[Registry]:
    with Registry(registry, credentials=lambda _: None) as client:
        yield client


@pytest.fixture
def wanted(tmp_path: Path, unique: str) -> SourceImage:
    return image(tmp_path / "blobs", layers_of(unique), compress=gzipped_in_parts)


def test_an_image_goes_to_a_registry_and_comes_back(
    client: Registry, pushed_to: Reference, wanted: SourceImage
) -> None:
    assert client.head(pushed_to.repository, "25.02") is None
    digest = push_image(client, pushed_to, wanted)
    assert client.head(pushed_to.repository, "25.02") == digest
    assert push_image(client, pushed_to, wanted) == digest, "the same again is no fault"
    for reference in (pushed_to, pushed_to.at(digest)):
        found = read_image(client, reference, AMD64)
        validate(found)
        assert (found.manifest, found.config) == (wanted.manifest, wanted.config)


def test_skopeo_sees_what_was_pushed_and_copies_it_unchanged(
    client: Registry, pushed_to: Reference, wanted: SourceImage, tmp_path: Path, skopeo: Callable[..., str]
) -> None:
    digest = push_image(client, pushed_to, wanted)
    inspected = json.loads(skopeo("inspect", "--tls-verify=false", f"docker://{pushed_to}"))
    assert Digest.parse(inspected["Digest"]) == digest
    skopeo("copy", "--src-tls-verify=false", f"docker://{pushed_to}", f"oci:{tmp_path}/copy:25.02")
    copied = open_image(tmp_path / "copy")
    validate(copied)
    assert copied.manifest == wanted.manifest


def test_what_skopeo_pushed_is_read(
    client: Registry, pushed_to: Reference, wanted: SourceImage, tmp_path: Path, skopeo: Callable[..., str]
) -> None:
    copy_into(Layout.create(tmp_path / "layout"), wanted, "25.02")
    for form in ("oci", "v2s2"):
        to = f"docker://{pushed_to.name}:{form}"
        skopeo("copy", "--dest-tls-verify=false", "--format", form, f"oci:{tmp_path}/layout:25.02", to)
        found = read_image(client, Reference.parse(f"{pushed_to.name}:{form}"), AMD64)
        validate(found)
        assert [layer.diff_id for layer in found.layers] == [layer.diff_id for layer in wanted.layers]


def test_layers_of_another_repository_are_mounted(
    client: Registry, pushed_to: Reference, wanted: SourceImage, unique: str, registry: str
) -> None:
    push_image(client, pushed_to, wanted)
    near = Reference.parse(f"{registry}/{unique}/near:1")
    delivery = publish_at(client, near, content_of(read_image(client, pushed_to, AMD64))).delivery
    assert delivery is not None
    assert delivery.mounted == 2
    validate(read_image(client, near, AMD64))


def test_platforms_share_a_tag_and_zstd_goes_along(client: Registry, pushed_to: Reference, tmp_path: Path) -> None:
    every = [
        image(tmp_path, platform=platform, compress=zstandard.compress, media_type=MediaType.OCI_LAYER_ZSTD)
        for platform in (AMD64, ARM64)
    ]
    push_index(client, pushed_to, every)
    for pushed, platform in zip(every, (AMD64, ARM64), strict=True):
        found = read_image(client, pushed_to, platform)
        validate(found)
        assert found.manifest == pushed.manifest


def test_other_bytes_than_the_digest_says_are_not_taken_by_a_registry(client: Registry, pushed_to: Reference) -> None:
    class Body:
        descriptor = Descriptor(MediaType.OCI_LAYER, Digest("0" * 64), 2)

        def pieces(self, start: int, end: int) -> tuple[bytes]:
            return (b"no"[start:end],)

    with pytest.raises(RegistryError, match="digest") as raised:
        upload(client, pushed_to.repository, Body())
    assert raised.value.status == 400
    assert not client.has_blob(pushed_to.repository, Digest("0" * 64))


def test_a_registry_with_a_login_takes_it_from_the_docker_config_alone(
    wanted: SourceImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registry").mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with registries.running(tmp_path / "registry", htpasswd=HTPASSWD) as guarded:
        name = Reference.parse(f"{guarded.address}/stack:1")
        for login in (None, Credentials(USER, "wrong")):
            with (
                Registry(guarded.address, credentials=lambda _, login=login: login) as client,
                pytest.raises(RegistryError, match=r"(refuses the|wants a) login") as raised,
            ):
                push_image(client, name, wanted)
            assert raised.value.hint == f"run: docker login {guarded.address}"
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {guarded.address: {"auth": auth}}}))
        with Registry(guarded.address) as client:
            push_image(client, name, wanted)
            validate(read_image(client, name, AMD64))
