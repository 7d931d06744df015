"""An image with what buildkit attests of it, put together by hand as its documentation shows it."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

from lj_image.oci.content import Blob, Content, Document
from lj_image.oci.descriptor import Descriptor, Platform, descriptor_of
from lj_image.oci.manifest import Index
from lj_image.oci.media_types import MediaType

STATEMENT = b'{"_type":"https://in-toto.io/Statement/v0.1","predicateType":"https://slsa.dev/provenance/v0.2"}'


def attested(image: Content) -> Content:
    """Return an index of an image and of an attestation about it."""
    own = image.root.descriptor
    empty = blob(b"{}", "application/vnd.oci.empty.v1+json")
    statement = blob(STATEMENT, "application/vnd.in-toto+json")
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MediaType.OCI_MANIFEST,
            "artifactType": "application/vnd.docker.attestation.manifest.v1+json",
            "config": empty.descriptor.to_json(),
            "layers": [statement.descriptor.to_json()],
        }
    ).encode()
    attestation = Descriptor(
        MediaType.OCI_MANIFEST,
        descriptor_of(manifest, MediaType.OCI_MANIFEST).digest,
        len(manifest),
        annotations={
            "vnd.docker.reference.type": "attestation-manifest",
            "vnd.docker.reference.digest": str(own.digest),
        },
        platform=Platform("unknown", "unknown"),
    )
    index = Index((own, attestation))
    documents = (*image.documents, Document(attestation, manifest), Document(index.descriptor(), index.to_bytes()))
    return Content(image.name, documents, (*image.blobs, empty, statement))


def blob(content: bytes, media_type: str) -> Blob:
    """Return bytes as a blob."""
    return Blob(descriptor_of(content, media_type), partial(_open_at, content))


def _open_at(content: bytes, offset: int) -> BytesIO:
    return BytesIO(content[offset:])
