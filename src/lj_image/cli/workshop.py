"""What commands that use an engine work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lj_image.cli.app import App
from lj_image.lock.progress import progress_for
from lj_image.release.build import Workshop
from lj_image.release.record import Records
from lj_image.templating import project_templates

if TYPE_CHECKING:
    import docker

    from lj_image.catalog.release import Release


def workshop(app: App, release: Release, api: docker.APIClient) -> Workshop:
    """Gather engine, store, records and templates for one release."""
    return Workshop(
        api=api,
        config=app.config,
        store=app.store,
        records=Records(app.config.cache_dir, release.image),
        templates=project_templates(app.catalog.root, app.config.cache_dir),
        say=app.say,
        progress=progress_for(),
    )
