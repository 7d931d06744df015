"""With what content is published: chosen by a command, used by whoever carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lj_image.config import Config
from lj_image.registry.client import Registry
from lj_image.registry.transfer.delivery import UNWATCHED, TransferWatcher

if TYPE_CHECKING:
    from lj_image.oci.content import Content
    from lj_image.registry.publishing.place import Place, Placed
    from lj_image.registry.uploading.journal import Journal
    from lj_image.release.source import OpenRegistry


class Publish(Protocol):
    """`registry.publishing`'s own function."""

    def __call__(
        self,
        content: Content,
        places: Sequence[Place],
        *,
        all_or_nothing: bool,
        force_tag: bool,
        dry_run: bool,
        watcher: TransferWatcher,
        journal: Journal | None,
        placed: Callable[[Placed], None],
    ) -> tuple[Placed, ...]:
        """Let places have content, the tags last; what single places met is in the answer."""


@dataclass(frozen=True, slots=True)
class Means:
    """With what content is published."""

    config: Config
    publish: Publish
    watcher: TransferWatcher = UNWATCHED
    state_dir: Path | None = None
    """Where it is kept how far uploads are, so that another run goes on with them."""
    open_registry: OpenRegistry = Registry
