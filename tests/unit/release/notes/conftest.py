"""What the tests of the notes start from: the repository's own notes, and a small family with a history."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from notes_records import WITH_NOTES

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Platform, Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile
from lj_image.release.notes import NoteFacts, note_facts, render_notes
from lj_image.release.record import Record
from lj_image.templating import Templates, project_templates

ROOT = Path(__file__).parents[4]


@pytest.fixture
def templates() -> Templates:
    return project_templates(ROOT / "images")


@pytest.fixture(scope="session")
def real_facts() -> Callable[..., NoteFacts]:
    """Return a function from a release of the repository's training family to its facts; each is read once."""

    @cache
    def facts(release: str, variant: str, image: str = "training-nv-pytorch") -> NoteFacts:
        config = Config(file=None, values=ConfigFile(), cache_dir=ROOT / "no-such-cache")
        catalog = Catalog(ROOT / "images")
        resolved = resolve(catalog, config, f"{image}/{release}", variant=variant, base_known=False)
        return note_facts(catalog, config, resolved, None)

    return facts


@pytest.fixture(scope="session")
def real_note(real_facts: Callable[..., NoteFacts]) -> Callable[..., str]:
    """Return a function from a release of the repository's training family, and a language, to its note."""
    templates = project_templates(ROOT / "images")

    @cache
    def note(release: str, variant: str, language: str) -> str:
        return render_notes(real_facts(release, variant), templates, language, "md")

    return note


@pytest.fixture
def tiny(write_catalog: Callable[..., Catalog], config: Config) -> Callable[..., tuple[Catalog, Release]]:
    """Return a function that writes the small family, with notes, and resolves one of its releases."""

    def make(
        release: str = "25.02",
        variant: str = "vendor",
        image: str = WITH_NOTES,
        platform: Platform | None = None,
        **releases: str,
    ) -> tuple[Catalog, Release]:
        catalog = write_catalog(image=image, **releases)
        return catalog, resolve(catalog, config, release, variant=variant, platform=platform, base_known=False)

    return make


@pytest.fixture
def tiny_facts(tiny: Callable[..., tuple[Catalog, Release]], config: Config) -> Callable[..., NoteFacts]:
    """Return a function from files of the small family, and a record, to a note's facts."""

    def facts(record: Record | None = None, **arguments: object) -> NoteFacts:
        catalog, release = tiny(**arguments)
        return note_facts(catalog, config, release, record)

    return facts
