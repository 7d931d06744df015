"""What commands share that publish what lies elsewhere: in a registry, or in a layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lj_image.cli.app import App
from lj_image.errors import ArtifactError, UsageError

if TYPE_CHECKING:
    from lj_image.oci.content import Content
    from lj_image.oci.digest import Digest
    from lj_image.registry.publishing.place import Place, Placed
    from lj_image.release.means import Means
    from lj_image.release.outcome import Outcome


def digest_of(text: str | None) -> Digest | None:
    """Read the value of --digest; raises UsageError."""
    from lj_image.oci.digest import Digest

    try:
        return None if text is None else Digest.parse(text)
    except ArtifactError as error:
        raise UsageError(f"--digest: {error.message}", hint=error.hint) from None


def means(app: App, parallel: int | None = None, deadline_s: float | None = None) -> Means:
    """Return with what content is published; `deadline_s` ends what is done at one registry."""
    import sys

    from lj_image.cli.transfer_view import transfer_view
    from lj_image.config import state_dir
    from lj_image.registry.transfer.memory import share_one_pool
    from lj_image.release.means import Means
    from lj_image.release.registries import opener

    share_one_pool()

    def publish(content: Content, places: Sequence[Place], **wishes: Any) -> tuple[Placed, ...]:
        from lj_image.registry.publishing.publish import PARALLEL, publish_content  # late: most often all is there

        return publish_content(content, places, parallel=parallel or PARALLEL, **wishes)

    return Means(
        app.config, publish, transfer_view(sys.stderr), state_dir() / "push", opener(app.config, deadline_s=deadline_s)
    )


def show(app: App, outcome: Outcome, *, as_json: bool) -> int:
    """Show what became of every place; raises the error that the command ends with."""
    from lj_image.release.outcome import published_line

    if as_json:
        app.print_json(outcome.to_json())
    else:
        for line in (*outcome.lines(), *filter(None, [published_line(outcome)])):
            app.print(line)
    if (error := outcome.error()) is not None:
        raise error
    return 0
