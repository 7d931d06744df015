"""What came over an air gap is published: the file is read once, and each blob is held against its digest meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lj_image.catalog.release import Endpoint, Release
from lj_image.config import Config
from lj_image.errors import ArtifactError, PublishError, UsageError
from lj_image.oci.content import Blob, Content
from lj_image.oci.descriptor import Platform
from lj_image.oci.digest import Digest, HashingReader
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.layout_content import content_in
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import CONFIGS, MANIFESTS, compression_of
from lj_image.oci.reference import Reference
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.release.carrying import carry, keep
from lj_image.release.means import Means
from lj_image.release.mirror import Parcel
from lj_image.release.outcome import Outcome, Wishes
from lj_image.release.record import Records
from lj_image.release.references import Target
from lj_image.release.source import Promise, is_host, promised, promises, reference_at
from lj_image.suggest import did_you_mean


def import_parcel(
    path: Path,
    parcel: Parcel,
    places: Sequence[Target],
    *,
    records: Records | None = None,
    key: str = "",
    digest: Digest | None = None,
    verify: bool = True,
    wishes: Wishes,
    means: Means,
) -> Outcome:
    """Publish what a layout holds at every target, and put it in the record where there is one.

    Raises PublishError for what was exported without proof, or is another image than the record has; ArtifactError for
    a damaged file, and then no tag has moved anywhere; what single targets met is in the outcome.
    """
    _require_proven(parcel, path, verify=verify)
    content = content_of_parcel(path, parcel, digest)
    promise = _promise(parcel, records, key, verify=verify)
    results = carry(content, places, wishes, means)
    if promise is not None and records is not None and not wishes.dry_run:
        keep(results, promise, records, key)
    passport = parcel.passport
    proven = passport is not None and passport.proof == "passed"
    image, release = (passport.image, passport.release) if passport else (path.name, parcel.known_as[0])
    tag = Reference.parse(places[0].reference).tag or ""
    return Outcome(image, release, tag, promise.image_id if promise else "", proven, results)


def content_of_parcel(path: Path, parcel: Parcel, digest: Digest | None = None) -> Content:
    """Read the documents of a parcel; raises ArtifactError for one that is damaged, not whole, or not that digest."""
    held = parcel.descriptor.digest
    if digest is not None and digest != held:
        raise ArtifactError(f"{path} holds {held}, and not {digest}", hint="it is another export, or was changed")
    return content_in(path, str(held))


def platforms_of(content: Content) -> tuple[str, ...]:
    """Return the platforms of its images, as their configurations state them; raises ArtifactError."""
    blobs = {blob.descriptor.digest: blob for blob in content.blobs}
    found: dict[str, None] = {}
    for document in content.documents:
        if document.descriptor.media_type in MANIFESTS:
            config = Manifest.parse(document.content, content.name).config
            if config.media_type in CONFIGS and config.digest in blobs and _says_image(document.content):
                found[str(_platform(blobs[config.digest]))] = None
    return tuple(found)


def _says_image(manifest: bytes) -> bool:
    """Say whether a manifest has layers of an image, and not what is attested of one."""
    return all(compression_of(layer.media_type) for layer in Manifest.parse(manifest).layers)


def _platform(config: Blob) -> Platform:
    with config.open_at(0) as stream:
        return ImageConfig.parse(stream.read(config.descriptor.size_bytes), "the configuration").platform


def check(content: Content, watch: Callable[[int], None]) -> None:
    """Read every blob; raises ArtifactError for the first whose bytes are not those of its digest."""
    for blob in content.blobs:
        with blob.open_at(0) as stream:
            reader = HashingReader(stream)
            while block := reader.read(BLOCK_BYTES):
                watch(len(block))
        if (reader.digest, reader.size_bytes) != (blob.descriptor.digest, blob.descriptor.size_bytes):
            raise ArtifactError(
                f"{content.name} is damaged: the blob {blob.descriptor.digest} has other bytes",
                hint="copy it again from where it was exported",
            )


def target_at(named: str, parcel: Parcel, config: Config) -> Target:
    """Return the target that `--to` means; raises UsageError.

    A place of the config and HOST[/PATH] stand before the release's own repository and tag; HOST/PATH:TAG is all.
    """
    places = config.values.endpoints.places
    if named not in places and not is_host(named):
        hint = f"{did_you_mean(named, places, noun='places of the config')}\nor name a registry: HOST[:PORT][/PATH]"
        raise UsageError(f"unknown place {named!r}", hint=hint)
    reference = _reference(places.get(named, named), parcel)
    endpoint = Endpoint(reference.host, "vpc", None, reference.repository)
    return Target(endpoint, str(reference), str(reference))


def _reference(place: str, parcel: Parcel) -> Reference:
    passport = parcel.passport
    if "/" in place and ":" in place.rpartition("/")[2]:
        return Reference.parse(place)
    if passport is not None:
        return reference_at(place, passport.repository, passport.tag)
    raise UsageError(
        "the file does not say which release it holds, so it has no repository and tag of its own",
        hint="write all of it: --to HOST/PATH:TAG",
    )


def require_same(parcel: Parcel, release: Release, path: Path) -> None:
    """Raise UsageError where a release of this project has another tag than the file says."""
    passport = parcel.passport
    if passport is not None and passport.tag != release.tag:
        raise UsageError(
            f"{path} has {passport.tag}, and {release.key} of this project is {release.tag}",
            hint="use the manifests that it was exported with, or publish it by --to HOST[/PATH]",
        )


def _require_proven(parcel: Parcel, path: Path, *, verify: bool) -> None:
    if parcel.passport is not None and parcel.passport.proof == "none" and verify:
        raise PublishError(
            f"{path} says that its image was not verified when it was exported",
            hint="export it again once it is verified; --no-verify lets it through",
        )


def _promise(parcel: Parcel, records: Records | None, key: str, *, verify: bool) -> Promise | None:
    """Return what a record says of the parcel; nothing where there is none. Raises PublishError."""
    known = promises(records.read(key)) if records is not None else ()
    if not known:
        return None
    has_passed = parcel.passport is not None and parcel.passport.proof == "passed"
    (promise, *_) = promised(known, parcel.descriptor.digest, key, verify=verify and not has_passed)
    return promise
