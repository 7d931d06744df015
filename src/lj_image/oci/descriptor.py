"""A descriptor: type, digest and size of a blob, and what is said of it.

Format: https://github.com/opencontainers/image-spec/blob/main/descriptor.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from lj_image.errors import UsageError
from lj_image.oci.digest import Digest
from lj_image.oci.values import Value

_SAME_VARIANT: Final = {"arm64": "v8", "arm": "v7"}
"""The variant that a platform without one stands for (containerd's platforms package normalises alike)."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What an image runs on; written `linux/arm64` or `linux/arm/v7`."""

    os: str
    architecture: str
    variant: str | None = None
    os_version: str | None = None
    os_features: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `os/architecture[/variant]`; raises UsageError."""
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise UsageError(f"no platform: {text!r}", hint="write os/architecture, such as linux/amd64")
        return cls(parts[0], parts[1], parts[2] if len(parts) == 3 else None)

    @classmethod
    def from_json(cls, value: Value) -> Self:
        """Read a platform object (image-index.md); raises ArtifactError."""
        return cls(
            value["os"].text(),
            value["architecture"].text(),
            value["variant"].text(None) or None,
            value["os.version"].text(None),
            value["os.features"].texts(),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object of an index; what is unknown is left out."""
        every = {
            "os": self.os,
            "architecture": self.architecture,
            "variant": self.variant,
            "os.version": self.os_version,
            "os.features": list(self.os_features) or None,
        }
        return {key: value for key, value in every.items() if value is not None}

    def serves(self, wanted: Platform) -> bool:
        """Say whether an image for this platform is one for `wanted`; a variant counts where it tells two apart."""
        own, theirs = (item.variant or _SAME_VARIANT.get(item.architecture) for item in (self, wanted))
        return (self.os, self.architecture, own) == (wanted.os, wanted.architecture, theirs)

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Which blob, how large, and of which type."""

    media_type: str
    digest: Digest
    size_bytes: int
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    platform: Platform | None = None
    urls: tuple[str, ...] = ()
    artifact_type: str | None = None

    @classmethod
    def from_json(cls, value: Value) -> Self:
        """Read a descriptor; raises ArtifactError that names what is wrong."""
        return cls(
            media_type=value["mediaType"].text(""),
            digest=value["digest"].read(Digest.parse),
            size_bytes=value["size"].number(),
            annotations=value["annotations"].text_map(),
            platform=Platform.from_json(value["platform"]) if "platform" in value else None,
            urls=value["urls"].texts(),
            artifact_type=value["artifactType"].text(None),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object of a manifest; what is empty is left out."""
        optional = {
            "annotations": dict(self.annotations),
            "platform": self.platform.to_json() if self.platform else None,
            "urls": list(self.urls),
            "artifactType": self.artifact_type,
        }
        given = {key: value for key, value in optional.items() if value}
        return {"mediaType": self.media_type, "digest": str(self.digest), "size": self.size_bytes, **given}


def descriptor_of(content: bytes, media_type: str, platform: Platform | None = None) -> Descriptor:
    """Describe bytes."""
    return Descriptor(media_type, Digest.of(content), len(content), platform=platform)
