"""What is believed of an image's labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.lock.lockfile import with_digest, write_lock
from lj_image.release.diff.claims import Claim, Claims
from lj_image.release.diff.contents import Distribution
from lj_image.release.record import Record, Records, Verified
from samples.locks import made_up_lock

LABELS = {"io.lj-image.image": "tiny", "io.lj-image.release": "25.02", "io.lj-image.variant": "open"}


@pytest.fixture
def catalog(write_catalog: Callable[..., Catalog]) -> Catalog:
    return write_catalog()


@pytest.fixture
def claims(catalog: Catalog, config: Config) -> Claims:
    def resolver(name: str, variant: str | None, *, platform: str | None, **options: Any) -> Release:
        return resolve(catalog, config, name, variant=variant, **options)

    return Claims(resolver, config.cache_dir)


def versions(claim: Claim) -> dict[str, str]:
    return {name: part.version for name, part in (claim.components or {}).items()}


def inside(**found: str) -> dict[str, Distribution]:
    return {name: Distribution(name, version, pinned=False) for name, version in found.items()}


def test_an_image_of_ours_has_the_components_of_its_release(claims: Claims) -> None:
    claim = claims.of(LABELS, "sha256:1", {})
    assert (claim.image, claim.variant, claim.notes) == ("tiny", "open", ())
    assert versions(claim) == {"runtime": "3.11.2", "kit": "12.8", "tool": "1.4.2", "library": "2.23.4"}


def test_what_is_found_inside_goes_before_what_was_promised(claims: Claims) -> None:
    assert versions(claims.of(LABELS, "sha256:1", inside(tool="1.5.0")))["tool"] == "1.5.0"
    assert versions(claims.of(LABELS, "sha256:1", inside(tool="1.4.2+cu124")))["tool"] == "1.4.2"


def test_the_proof_of_this_very_image_says_what_it_found(claims: Claims, config: Config) -> None:
    verified = Verified("sha256:1", False, 1, (), {"runtime": "3.11.9", "kit": "12.8"}, "2025-02-01T00:00:00+00:00")
    Records(config.cache_dir, "tiny").update("25.02-open", lambda _: Record("tiny", "25.02", "open", verified=verified))
    assert versions(claims.of(LABELS, "sha256:1", {}))["runtime"] == "3.11.9"
    assert versions(claims.of(LABELS, "sha256:2", {}))["runtime"] == "3.11.2"


def test_a_partial_image_has_its_components_and_those_of_the_base(claims: Claims) -> None:
    claim = claims.of(LABELS | {"io.lj-image.partial": "tool"}, "sha256:1", {})
    assert list(versions(claim)) == ["runtime", "tool"]


def test_versions_that_were_tried_are_those_inside(claims: Claims) -> None:
    assert versions(claims.of(LABELS | {"io.lj-image.set": "tool=1.9.0"}, "sha256:1", {}))["tool"] == "1.9.0"


def test_another_s_image_has_distributions_alone(claims: Claims) -> None:
    claim = claims.of({"maintainer": "x"}, "sha256:1", {})
    assert claim.components is None
    assert claim.notes == ("not built by lj-image, so its distributions alone are compared, not its components",)


def test_a_release_that_the_catalog_has_not_is_said(claims: Claims) -> None:
    claim = claims.of(LABELS | {"io.lj-image.release": "24.01"}, "sha256:1", {})
    assert claim.components is None
    assert claim.notes == ("says it is tiny 24.01, open: tiny has no release '24.01'",)


def test_another_lock_is_said(claims: Claims, catalog: Catalog, config: Config) -> None:
    release = resolve(catalog, config, "25.02", variant="open")
    lock = with_digest(made_up_lock(release))
    write_lock(lock, release.folder / "locks" / "25.02-open.txt")
    of = partial(claims.of, image_id="sha256:1", inside={})
    assert of(LABELS | {"io.lj-image.lock": lock.digest}).notes == ()
    assert of(LABELS | {"io.lj-image.lock": "sha256:old"}).notes == ("built from another lock than 25.02-open has now",)


def test_a_damaged_record_is_said(claims: Claims, config: Config) -> None:
    path = Records(config.cache_dir, "tiny").path("25.02-open")
    path.parent.mkdir(parents=True)
    Path(path).write_text("{")
    assert "the record of 25.02-open is damaged" in claims.of(LABELS, "sha256:1", {}).notes[0]
