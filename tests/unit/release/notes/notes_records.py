"""A family with notes, and records made up for it."""

from __future__ import annotations

from lj_image.release.record import Built, Pushed, Record, Verified
from samples.tiny import IMAGE

IMAGE_ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64

WITH_NOTES = IMAGE.replace(
    "namespace: team\n",
    "namespace: team\n"
    "notes:\n"
    "  product: {en: The Product, zh: 产品}\n"
    "  scenario: {en: Training, zh: 训练}\n"
    "  languages: [en, zh]\n",
)


def record_of(
    image: str, release: str, variant: str, found: dict[str, str], pushed: tuple[tuple[str, str | None], ...] = ()
) -> Record:
    """Make up the record of an image that was built, proven and pushed; `pushed` holds reference and region."""
    return Record(
        image,
        release,
        variant,
        built=Built(IMAGE_ID, f"{image}:{release}", "", "", "", "docker", "", "2026-01-02T03:04:05+00:00", 1.0, 1),
        verified=Verified(IMAGE_ID, True, 12, (), found, "2026-01-02T03:05:06+00:00"),
        pushed=tuple(
            Pushed(reference, reference, DIGEST, IMAGE_ID, "vpc" if region else "public", region, True, "")
            for reference, region in pushed
        ),
    )
