"""What a finished layer is known by; apart from what writes one, which a push does not need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerBlob:
    """A finished layer."""

    digest: str
    """`sha256:…` of the compressed bytes."""
    size_bytes: int
    diff_id: str
    """`sha256:…` of the tar."""
    tar_bytes: int
