"""A release that one registry holds is published from there: by digest, with nothing of it on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from lj_image.catalog.release import Release
from lj_image.errors import PublishError
from lj_image.oci.digest import Digest
from lj_image.release.carrying import carry, keep
from lj_image.release.means import Means
from lj_image.release.outcome import Outcome, Wishes
from lj_image.release.record import Record, Records
from lj_image.release.references import Target
from lj_image.release.source import Say, content_from, promises


def promote(
    release: Release,
    source: str,
    places: Sequence[Target],
    *,
    records: Records,
    digest: Digest | None = None,
    verify: bool = True,
    wishes: Wishes,
    means: Means,
    say: Say,
) -> Outcome:
    """Publish what a source holds at every target, and put it in the record where there is one.

    `source` is as in `source.source_of`. What is published is the digest of the record, else `digest`, else what the
    source's tag holds. Raises UsageError for an unknown source, PublishError where the record has no proof of it or
    knows another digest, ArtifactError where the source lacks it, Interrupted; what single targets met is in the
    outcome.
    """
    record = records.read(release.key)
    with content_from(
        *(source, release, release.tag, means.config),
        record=record,
        digest=digest,
        verify=verify,
        say=say,
        open_registry=means.open_registry,
        referrers=True,
    ) as found:
        results = carry(found.content, places, wishes, means)
    promise = found.promise
    if promise is not None and not wishes.dry_run:
        keep(results, promise, records, release.key)
    image_id, proven = (promise.image_id, promise.proven) if promise else ("", False)
    return Outcome(release.image, release.name, release.tag, image_id, proven, results)


def require_promise(record: Record | None, key: str) -> None:
    """Raise PublishError where no record of this machine says which digest the release has."""
    if not promises(record):
        raise PublishError(
            f"no record of this machine says which digest {key} has",
            hint="where the source's tag is to be trusted: lj-image promote --from PLACE, with --digest if you know it",
        )
