"""Content as a kind of registry takes it: what it refuses is left out, changed, or told before any byte goes out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lj_image.errors import ArtifactError, PublishError
from lj_image.oci.capabilities import MIB, Capabilities
from lj_image.oci.content import Content
from lj_image.oci.media_types import compression_of
from lj_image.oci.pruning import of_kind, without_attestations
from lj_image.registry.referrers import subject_of


@dataclass(frozen=True, slots=True)
class Fitted:
    """Content for one kind of registry."""

    content: Content
    notes: tuple[str, ...] = ()
    """What is other than in the content as it was given, in a sentence each."""


def fitted(content: Content, takes: Capabilities) -> Fitted:
    """Return content as a registry takes it; raises PublishError where it takes it in no form."""
    found, notes = content, []
    if not takes.attestations and (left := without_attestations(found)) is not found:
        notes.append(left_out(found, left, f"a registry of the kind {takes.profile} refuses them"))
        found = left
    if takes.media_types != "any":
        try:
            converted = of_kind(found, takes.media_types)
        except ArtifactError as error:
            raise PublishError(error.message, hint=error.hint) from None
        if converted is not found:
            notes.append(
                f"with {takes.media_types} media types, which a registry of the kind {takes.profile} wants: "
                f"{converted.root.descriptor.digest} instead of {found.root.descriptor.digest}"
            )
            found = converted
    found, dropped = _with_fitting_referrers(content, found, takes)
    notes.extend(dropped)
    _require_taken(found, takes)
    return Fitted(found, tuple(notes))


def _with_fitting_referrers(content: Content, found: Content, takes: Capabilities) -> tuple[Content, tuple[str, ...]]:
    """Return content with those referrers that are taken, and are about what is published."""
    if not content.referrers:
        return found, ()
    if not takes.referrers:
        note = f"without its {_referrers(len(content.referrers))}: a registry of the kind {takes.profile} refuses them"
        return replace(found, referrers=()), (note,)
    published = {document.descriptor.digest for document in found.documents}
    kept: list[Content] = []
    for referrer in content.referrers:  # what one is about stands before it
        if subject_of(referrer) in published:
            published.add(referrer.root.descriptor.digest)
            kept.append(referrer)
    lost = len(content.referrers) - len(kept)
    notes = (f"without {_referrers(lost)} of what is published here in another form",) if lost else ()
    return replace(found, referrers=tuple(kept)), notes


def _referrers(count: int) -> str:
    return "one referrer" if count == 1 else f"{count} referrers"


def left_out(before: Content, after: Content, why: str) -> str:
    """Return the sentence that tells of attestations which are not published."""
    return (
        f"without attestations, since {why}: {after.root.descriptor.digest} instead of {before.root.descriptor.digest}"
    )


def _require_taken(content: Content, takes: Capabilities) -> None:
    kind = f"a registry of the kind {takes.profile}"
    for blob in content.blobs:
        item = blob.descriptor
        if not takes.zstd and compression_of(item.media_type) == "zstd":
            raise PublishError(
                f"{kind} takes no layers in zstd", hint="build with gzip: lj-image build --compression gzip"
            )
        if takes.largest_layer_bytes is not None and item.size_bytes > takes.largest_layer_bytes:
            raise PublishError(
                f"{kind} takes no layer above {takes.largest_layer_bytes / MIB:,.0f} MiB, "
                f"and {item.digest} has {item.size_bytes / MIB:,.0f}",
                hint="let fewer distributions share a layer",
            )
    for document in content.documents:
        if document.descriptor.size_bytes > takes.largest_manifest_bytes:
            raise PublishError(
                f"{kind} takes no manifest above {takes.largest_manifest_bytes / MIB:,.0f} MiB, "
                f"and {document.descriptor.digest} has {document.descriptor.size_bytes / MIB:,.1f}",
                hint="annotations and layers make it large: use fewer",
            )
