"""Manifests and indexes: values that know their bytes and digest.

Format: https://github.com/opencontainers/image-spec/blob/main/manifest.md and …/image-index.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from lj_image.errors import ArtifactError
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import INDEXES, MANIFESTS, MediaType
from lj_image.oci.values import Value, canonical

LARGEST_BYTES: Final = 4 * 1024 * 1024
"""Of a manifest: what registries must take (distribution spec, "Pushing Manifests"); a larger one is an attack."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One image: its configuration and its layers, the lowest first.

    The bytes of a manifest that was read are not kept: its own digest is that of what was read, not `digest` here.
    """

    config: Descriptor
    layers: tuple[Descriptor, ...]
    media_type: str = MediaType.OCI_MANIFEST
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    subject: Descriptor | None = None
    artifact_type: str | None = None

    @classmethod
    def parse(cls, content: bytes, document: str = "the manifest") -> Self:
        """Read a manifest; raises ArtifactError that names what is wrong."""
        value = _document(content, document, MANIFESTS, MediaType.OCI_MANIFEST, foreign=("manifests", "fsLayers"))
        return cls(
            config=Descriptor.from_json(value["config"]),
            layers=tuple(map(Descriptor.from_json, value["layers"].items())),
            media_type=value["mediaType"].text(MediaType.OCI_MANIFEST),
            annotations=value["annotations"].text_map(),
            subject=Descriptor.from_json(value["subject"]) if "subject" in value else None,
            artifact_type=value["artifactType"].text(None),
        )

    def to_bytes(self) -> bytes:
        """Return canonical JSON."""
        parts = {"config": self.config.to_json(), "layers": [layer.to_json() for layer in self.layers]}
        return canonical(_head(self) | parts)

    @property
    def digest(self) -> Digest:
        """Of the canonical bytes."""
        return Digest.of(self.to_bytes())

    def descriptor(self, platform: Platform | None = None) -> Descriptor:
        """Describe the canonical bytes."""
        return _described(self, platform)


@dataclass(frozen=True, slots=True)
class Index:
    """Several manifests, or a layout's entries."""

    manifests: tuple[Descriptor, ...] = ()
    media_type: str = MediaType.OCI_INDEX
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    subject: Descriptor | None = None
    artifact_type: str | None = None

    @classmethod
    def parse(cls, content: bytes, document: str = "the index") -> Self:
        """Read an index; raises ArtifactError that names what is wrong."""
        value = _document(content, document, INDEXES, MediaType.OCI_INDEX, foreign=("config", "layers", "fsLayers"))
        if "manifests" not in value:
            value["manifests"].fail("an array")
        return cls(
            manifests=tuple(map(Descriptor.from_json, value["manifests"].items())),
            media_type=value["mediaType"].text(MediaType.OCI_INDEX),
            annotations=value["annotations"].text_map(),
            subject=Descriptor.from_json(value["subject"]) if "subject" in value else None,
            artifact_type=value["artifactType"].text(None),
        )

    def to_bytes(self) -> bytes:
        """Return canonical JSON."""
        return canonical(_head(self) | {"manifests": [item.to_json() for item in self.manifests]})

    @property
    def digest(self) -> Digest:
        """Of the canonical bytes."""
        return Digest.of(self.to_bytes())

    def descriptor(self, platform: Platform | None = None) -> Descriptor:
        """Describe the canonical bytes."""
        return _described(self, platform)


def _document(content: bytes, document: str, allowed: frozenset[str], default: str, foreign: tuple[str, ...]) -> Value:
    """Read the document and see that it is of one kind.

    Bytes that are a manifest to one reader and an index to another were CVE-2021-41190: refused.
    """
    if len(content) > LARGEST_BYTES:
        raise ArtifactError(f"{document} has {len(content)} bytes, more than any registry takes")
    value = Value.parse(content, document)
    media_type = value["mediaType"].text(default)
    if media_type not in allowed:
        raise ArtifactError(f"{document} is of the type {media_type!r}, and not {' or '.join(sorted(allowed))}")
    if other := next((key for key in foreign if key in value), None):
        raise ArtifactError(f"{document} is of the type {media_type!r}, and yet has {other!r}")
    if value["schemaVersion"].number(2) != 2:
        value["schemaVersion"].fail("2")
    return value


def _head(document: Manifest | Index) -> dict[str, Any]:
    optional = {
        "annotations": dict(document.annotations),
        "artifactType": document.artifact_type,
        "subject": document.subject.to_json() if document.subject else None,
    }
    given = {key: value for key, value in optional.items() if value}
    return {"schemaVersion": 2, "mediaType": document.media_type, **given}


def _described(document: Manifest | Index, platform: Platform | None) -> Descriptor:
    content = document.to_bytes()
    return Descriptor(document.media_type, Digest.of(content), len(content), platform=platform)
