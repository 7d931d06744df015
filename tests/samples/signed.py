"""Signatures and bills of materials beside an image: manifests that name it as their subject, put together by hand."""

from __future__ import annotations

import json

from lj_image.oci.content import Content, Document
from lj_image.oci.descriptor import Descriptor, descriptor_of
from lj_image.oci.media_types import MediaType
from samples.attested import blob

SIGNATURE = "application/vnd.example.signature.v1"
MATERIALS = "application/vnd.example.sbom.v1+json"


def about(subject: Descriptor, artifact_type: str = SIGNATURE, said: bytes = b"signed") -> Content:
    """Return an artifact about a manifest, as image-spec's guidelines for artifacts show one."""
    empty = blob(b"{}", "application/vnd.oci.empty.v1+json")
    words = blob(said, "text/plain")
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MediaType.OCI_MANIFEST,
            "artifactType": artifact_type,
            "config": empty.descriptor.to_json(),
            "layers": [words.descriptor.to_json()],
            "subject": {"mediaType": subject.media_type, "digest": str(subject.digest), "size": subject.size_bytes},
            "annotations": {"org.example.said": said.decode()},
        }
    ).encode()
    return Content("about it", (Document(descriptor_of(manifest, MediaType.OCI_MANIFEST), manifest),), (empty, words))
