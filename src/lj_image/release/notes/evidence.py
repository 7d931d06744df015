"""The record of a release, held against the release: what a note may call verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lj_image.catalog.release import Release, RunSource
from lj_image.catalog.versions import keeps_promise
from lj_image.errors import VerificationError
from lj_image.release.notes.note import Asset, Evidence
from lj_image.release.record import Record


def evidence_of(release: Release, record: Record | None) -> Evidence | None:
    """Return what was verified of a release, or None while its image is not built or not proven.

    Raises VerificationError for the record of another image, and for one whose versions are not the release's.
    """
    if record is None:
        return None
    _require_same(release, record)
    if record.built is None or record.verified is None or not record.proves(record.built.image_id):
        return None
    found = dict(_versions(release, record.verified.found))
    wrong = tuple(_differences(release, found))
    if wrong:
        raise VerificationError(
            f"the verified image is not {release.key} as the release is written now: {'; '.join(wrong)}",
            hint=f"build and verify it again: lj-image build {release.image}/{release.name} "
            f"--variant {release.variant}",
        )
    verified = record.verified
    return Evidence(verified.image_id, verified.at, verified.checks, found)


def published(record: Record | None, evidence: Evidence | None) -> tuple[Asset, ...]:
    """Return the references that hold the verified image, with their digests; the public one has no region."""
    if record is None or evidence is None:
        return ()
    return tuple(
        Asset(item.reference, item.region, item.digest) for item in record.pushed if item.image_id == evidence.image_id
    )


def _require_same(release: Release, record: Record) -> None:
    of_record = (record.image, record.release, record.variant)
    if of_record != (release.image, release.name, release.variant):
        image, name, variant = of_record
        raise VerificationError(
            f"the record is that of {image} {name}-{variant}, not of {release.image} {release.key}",
            hint="it lies under another's name; build and verify the release again",
        )


def _versions(release: Release, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what was found that is a version: what a command prints was held against what it was to print."""
    for component_id, version in found.items():
        component = release.component(component_id)
        if version and not (component and isinstance(component.source, RunSource)):
            yield component_id, version


def _differences(release: Release, found: Mapping[str, str]) -> Iterator[str]:
    for component_id, version in found.items():
        component = release.component(component_id)
        if component is None:
            yield f"it holds {component_id} {version}, which the release has not"
        elif not keeps_promise(component.installed_version, version):
            yield f"it holds {component.title} {version}, the release {component.installed_version}"
