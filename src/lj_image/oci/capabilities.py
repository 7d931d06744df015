"""What a kind of registry takes and refuses: the values of a profile, which manifests and built-in data fill in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

UploadForm = Literal["chunks", "stream", "put"]
"""How a blob's bytes go out: in chunks with `Content-Range`; in one PATCH without it; in one PUT."""
MediaTypes = Literal["any", "oci", "docker"]
"""Which media types manifests may have."""

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known of a kind of registry before anything is sent there."""

    profile: str = "unknown"
    """The name of the kind, for messages and records: `acr`, `distribution`."""
    upload: UploadForm = "chunks"
    """The first form that is tried; a registry that refuses it is tried with another."""
    chunk_bytes: int = 16 * MIB
    """Of each chunk but the last; more where the registry announces more."""
    last_chunk_in_put: bool = False
    """Whether the last chunk goes with the closing PUT, for registries that fail on an empty one."""
    mount: bool = True
    """Whether a repository can be given a blob of another one of the same registry."""
    media_types: MediaTypes = "any"
    attestations: bool = True
    """Whether an index may name attestations beside its images."""
    referrers: bool = True
    """Whether manifests that say something about an image are taken beside it: signatures, bills of materials."""
    zstd: bool = True
    immutable_tags: bool = False
    """Whether a tag that exists can never be set again, not even to the same digest."""
    largest_layer_bytes: int | None = None
    largest_manifest_bytes: int = 4 * MIB
