"""What a push relies on from any registry, asked of each implementation that this machine has, without our client.

A registry that fails one of these needs a profile of its own. docs/registries.md says what each rule is for.
Rules: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
import requests

from lj_image.oci.capabilities import Capabilities
from lj_image.registry.client import Registry
from lj_image.registry.publishing.documents import OneReader
from lj_image.registry.uploading.upload import bring_blob
from samples.attested import blob as blob_of
from standins.registries import PROGRAMS, running
from standins.registries import Registry as Real

SIZE = 300_000
CONFIG = b'{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture(scope="module", params=PROGRAMS)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with running(tmp_path_factory.mktemp("registry"), program=request.param) as registry:
        yield registry


@pytest.fixture
def repository() -> str:
    return f"conformance/{secrets.token_hex(4)}"


@pytest.fixture
def content() -> bytes:
    """Return what no repository has: some registries have one store of blobs for all of them."""
    return secrets.token_bytes(SIZE)


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def ask(real: Real, method: str, path: str, content: bytes = b"", **headers: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        url = urljoin(f"http://{real.address}/v2/", path)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return session.request(method, url, data=content, headers=named, timeout=20)


def begun(real: Real, repository: str) -> str:
    answer = ask(real, "POST", f"{repository}/blobs/uploads/", Content_Length="0")
    assert answer.status_code == 202
    return urljoin(answer.url, answer.headers["Location"])


def ended(location: str, digest: str) -> str:
    return f"{location}{'&' if '?' in location else '?'}digest={digest}"


def stored(real: Real, repository: str, content: bytes) -> str:
    digest = digest_of(content)
    answer = ask(real, "PUT", ended(begun(real, repository), digest), content)
    assert answer.status_code == 201
    return digest


def manifest_of(real: Real, repository: str, content: bytes) -> bytes:
    config, layer = stored(real, repository, CONFIG), stored(real, repository, content)
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": config,
                "size": len(CONFIG),
            },
            "layers": [
                {
                    "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                    "digest": layer,
                    "size": len(content),
                }
            ],
        }
    ).encode()


def test_a_blob_that_is_not_there_is_a_404(real: Real, repository: str, content: bytes) -> None:
    assert ask(real, "HEAD", f"{repository}/blobs/{digest_of(content)}").status_code == 404


def test_a_blob_that_is_there_tells_its_length(real: Real, repository: str, content: bytes) -> None:
    stored(real, repository, content)
    answer = ask(real, "HEAD", f"{repository}/blobs/{digest_of(content)}")
    assert (answer.status_code, answer.headers["Content-Length"]) == (200, str(len(content)))


def test_a_blob_goes_in_chunks_each_at_the_newest_location(real: Real, repository: str, content: bytes) -> None:
    location, middle = begun(real, repository), 100_000
    for start, end in ((0, middle), (middle, len(content))):
        answer = ask(real, "PATCH", location, content[start:end], Content_Range=f"{start}-{end - 1}")
        assert answer.status_code in (202, 204), "204 is crane's"
        assert answer.headers["Range"].removeprefix("bytes=") == f"0-{end - 1}"
        location = urljoin(answer.url, answer.headers["Location"])
    assert ask(real, "PUT", ended(location, digest_of(content))).status_code == 201
    assert ask(real, "GET", f"{repository}/blobs/{digest_of(content)}").content == content


def test_the_last_chunk_may_come_with_the_end(real: Real, repository: str, content: bytes) -> None:
    answer = ask(real, "PATCH", begun(real, repository), content[:100_000], Content_Range="0-99999")
    location = urljoin(answer.url, answer.headers["Location"])
    assert ask(real, "PUT", ended(location, digest_of(content)), content[100_000:]).status_code == 201


def test_a_blob_goes_in_one_patch_without_a_range(real: Real, repository: str, content: bytes) -> None:
    answer = ask(real, "PATCH", begun(real, repository), content)
    assert answer.status_code in (202, 204)
    assert (
        ask(real, "PUT", ended(urljoin(answer.url, answer.headers["Location"]), digest_of(content))).status_code == 201
    )


def test_what_is_not_of_the_digest_is_refused(real: Real, repository: str, content: bytes) -> None:
    answer = ask(real, "PUT", ended(begun(real, repository), digest_of(content)), content[:-1])
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["code"] == "DIGEST_INVALID"
    assert ask(real, "HEAD", f"{repository}/blobs/{digest_of(content)}").status_code == 404


def test_an_upload_that_nobody_began_is_not_taken_for_one(real: Real, repository: str) -> None:
    begun_at = begun(real, repository).partition("?")[0]
    unknown = f"{begun_at.rpartition('/')[0]}/00000000-0000-4000-8000-000000000000"
    assert ask(real, "GET", unknown).status_code >= 400


def test_a_mount_is_a_201_or_begins_an_upload(real: Real, repository: str, content: bytes) -> None:
    stored(real, f"{repository}/before", content)
    answer = ask(real, "POST", f"{repository}/blobs/uploads/?mount={digest_of(content)}&from={repository}/before")
    assert answer.status_code in (201, 202)
    if answer.status_code == 202:
        assert answer.headers["Location"]
    else:
        assert ask(real, "HEAD", f"{repository}/blobs/{digest_of(content)}").status_code == 200


def test_a_manifest_is_kept_byte_by_byte_under_digest_and_tag(real: Real, repository: str, content: bytes) -> None:
    manifest = manifest_of(real, repository, content)
    digest = digest_of(manifest)
    for wanted in (digest, "25.02"):
        put = ask(real, "PUT", f"{repository}/manifests/{wanted}", manifest, Content_Type=OCI_MANIFEST)
        assert put.status_code == 201
        found = ask(real, "GET", f"{repository}/manifests/{wanted}", Accept=OCI_MANIFEST)
        assert found.content == manifest
        assert found.headers["Content-Type"].partition(";")[0] == OCI_MANIFEST
    assert ask(real, "HEAD", f"{repository}/manifests/25.02", Accept=OCI_MANIFEST).headers["Docker-Content-Digest"] == (
        digest
    )


def test_a_tag_that_is_not_there_is_a_404(real: Real, repository: str, content: bytes) -> None:
    manifest = manifest_of(real, repository, content)
    assert ask(real, "PUT", f"{repository}/manifests/1", manifest, Content_Type=OCI_MANIFEST).status_code == 201
    assert ask(real, "HEAD", f"{repository}/manifests/2").status_code == 404
    assert ask(real, "GET", f"{repository}/manifests/2").status_code == 404


def test_a_tag_moves_with_a_put(real: Real, repository: str, content: bytes) -> None:
    first = manifest_of(real, repository, content)
    second = first.replace(b'"schemaVersion"', b' "schemaVersion"')
    for manifest in (first, second):
        ask(real, "PUT", f"{repository}/manifests/latest", manifest, Content_Type=OCI_MANIFEST)
        found = ask(real, "GET", f"{repository}/manifests/latest", Accept=OCI_MANIFEST)
        assert found.content == manifest


def test_an_index_is_taken_once_its_manifests_are_there(real: Real, repository: str, content: bytes) -> None:
    manifest = manifest_of(real, repository, content)
    digest = digest_of(manifest)
    ask(real, "PUT", f"{repository}/manifests/{digest}", manifest, Content_Type=OCI_MANIFEST)
    child = {"mediaType": OCI_MANIFEST, "digest": digest, "size": len(manifest)}
    index = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child]}).encode()
    assert ask(real, "PUT", f"{repository}/manifests/1", index, Content_Type=OCI_INDEX).status_code == 201


@pytest.mark.parametrize("form", ["chunks", "stream", "put"])
@pytest.mark.parametrize("size", [0, 1, 99_999, 100_000, 100_001, 300_000])
def test_our_upload_arrives_in_each_form(real: Real, repository: str, form: str, size: int) -> None:
    content = secrets.token_bytes(size)
    takes = Capabilities(upload=form, chunk_bytes=100_000)  # type: ignore[arg-type]
    blob = blob_of(content, "application/octet-stream")
    with Registry(real.address, intent="push", capabilities=takes, credentials=lambda _: None) as registry:
        arrival = bring_blob(registry, repository, OneReader(blob))
        assert arrival.sent_bytes == size or size <= 1, "a registry with one store may have had such a byte"
        assert bring_blob(registry, repository, OneReader(blob)).way == "existing"
    assert ask(real, "GET", f"{repository}/blobs/{blob.descriptor.digest}").content == content
