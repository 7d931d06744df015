"""The release that a command means when it names none: the one whose image was built last."""

from __future__ import annotations

from lj_image.cli.app import App
from lj_image.errors import UsageError


def last_built(app: App) -> tuple[str, str]:
    """Return release (as `image/25.02`) and variant of the image built last on this machine."""
    from lj_image.release.record import Records

    found = [
        (record.built.at, record)
        for name in app.catalog.family_names
        for record in Records(app.config.cache_dir, name).all()
        if record.built and not record.built.partial and not record.built.overridden
    ]
    if not found:
        raise UsageError("nothing was built on this machine", hint="name a release, or run: lj-image build RELEASE")
    _, record = max(found, key=lambda item: item[0])
    app.say(f"the release built last: {record.release}, variant {record.variant}")
    return f"{record.image}/{record.release}", record.variant
