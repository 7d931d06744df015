"""Proof: an image in the engine is held against the release that it claims to be, and the record says the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.builders.docker.base import ensure_base
from lj_image.builders.docker.engine import find_image
from lj_image.config import Source
from lj_image.dockerfile import labels
from lj_image.errors import ManifestError, UsageError, VerificationError
from lj_image.lock.lock import LockedArchive
from lj_image.plan import ArchiveLayer, Plan
from lj_image.release.assembled import identity
from lj_image.release.build import Workshop, build_secrets
from lj_image.release.record import Record, Verified
from lj_image.verify.report import VerifyReport
from lj_image.verify.subject import Subject

if TYPE_CHECKING:
    import docker


@dataclass(frozen=True, slots=True)
class ImageClaim:
    """What an image's labels say it is."""

    image_id: str
    image: str
    release: str
    variant: str
    lock: str
    only: tuple[str, ...]
    overridden: Mapping[str, str]


def claim_of(api: docker.APIClient, reference: str) -> ImageClaim | None:
    """Read an image's claim from its labels; None when the engine has no such image.

    Raises UsageError for an image that lj-image did not build.
    """
    found = find_image(api, reference)
    if found is None:
        return None
    written = (found.get("Config") or {}).get("Labels") or {}
    try:
        return ImageClaim(
            image_id=found["Id"],
            image=written["io.lj-image.image"],
            release=written["io.lj-image.release"],
            variant=written["io.lj-image.variant"],
            lock=written["io.lj-image.lock"],
            only=tuple(filter(None, written.get("io.lj-image.partial", "").split(","))),
            overridden=dict(pair.split("=", 1) for pair in written.get("io.lj-image.set", "").split(",") if pair),
        )
    except KeyError as missing:
        raise UsageError(
            f"{reference} has no label {missing}: it was not built by lj-image",
            hint="name a release, or an image that `lj-image build` made",
        ) from None


def prove(plan: Plan, image_id: str, workshop: Workshop, *, junit: Path | None) -> tuple[VerifyReport, Record]:
    """Verify an image of a plan and record the outcome; raises VerificationError when it cannot be started.

    `image_id` is the image's own or the engine's; report and record have its own. An assembled image is loaded first.
    """
    from lj_image.verify.runner import verify

    subject = subject_of(plan, image_id, workshop)  # the base comes first: an engine that has it needs only the rest
    record, api, config = workshop.records.read(plan.key), workshop.api, workshop.config
    built = record.built if record else None
    own, loaded = identity(built, image_id, plan.release, api, config, workshop.say)
    subject = replace(subject, image_id=loaded)
    report = verify(subject, api=api, cache_dir=config.cache_dir, junit=junit, progress=workshop.say)
    report = replace(report, image_id=own)
    return report, _recorded(plan, report, workshop)


def subject_of(plan: Plan, image_id: str, workshop: Workshop) -> Subject:
    """Gather everything that an image of a plan is held against; makes or pulls the base if it is not there."""
    base = ensure_base(workshop.api, plan.release.base, workshop.config, plan.release.platform, log=workshop.say)
    return Subject(
        plan=plan,
        image_id=image_id,
        base_image_ref=base.reference,
        labels=dict(labels(plan)),
        needles=_needles(plan, workshop),
        tests=_tests(plan),
        archives=_archives(plan, workshop),
    )


def _needles(plan: Plan, workshop: Workshop) -> tuple[bytes, ...]:
    """Return every secret that the build could have let into the image."""
    sources = (*workshop.config.values.indexes.values(), *workshop.config.values.archives.values())
    passwords = [_password(source, workshop) for source in sources if source.username]
    secrets = (value for name, value in build_secrets(plan, workshop.config).items() if name != "ca_bundle")
    return tuple({*(item.encode() for item in passwords if item), *(item.strip() for item in secrets)})


def _password(source: Source, workshop: Workshop) -> str | None:
    """Return a password to look for; a machine that only verifies need not have it, and is told so."""
    try:
        return source.password()
    except ManifestError as error:
        workshop.say(f"not looked for in the image: the password for {source.url} ({error.message})")
        return None


def _tests(plan: Plan) -> Path | None:
    folder = plan.release.folder / "tests"
    return folder if folder.is_dir() and not plan.only else None


def _archives(plan: Plan, workshop: Workshop) -> dict[str, Path]:
    archives: list[LockedArchive] = [layer.archive for layer in plan.layers if isinstance(layer, ArchiveLayer)]
    return {
        item.component: workshop.store.path(item.artifact.sha256)
        for item in archives
        if workshop.store.has(item.artifact)
    }


def _recorded(plan: Plan, report: VerifyReport, workshop: Workshop) -> Record:
    verified = Verified(
        image_id=report.image_id,
        passed=report.passed,
        checks=len(report.checks),
        failed=tuple(check.name for check in report.failed),
        found=dict(report.found),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )

    def change(record: Record | None) -> Record:
        if record is None:
            release = plan.release
            return Record(release.image, release.name, release.variant, verified=verified)
        return replace(record, verified=verified)

    return workshop.records.update(plan.key, change)


def built_image(record: Record | None, key: str, image: str | None = None) -> str:
    """Return the image id in a record; raises VerificationError when nothing was built.

    `image` is what the command in the hint says before the release; see Release.image_in_commands.
    """
    if record is None or record.built is None:
        release, _, variant = key.partition("-")
        named = f"{image}/{release}" if image else release
        raise VerificationError(
            f"{key} has not been built on this machine", hint=f"run: lj-image build {named} --variant {variant}"
        )
    return record.built.image_id
