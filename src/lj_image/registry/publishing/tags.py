"""Tags of one place: what they hold, whether they may move, and that they hold afterwards what they were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lj_image.errors import ArtifactError, PublishError
from lj_image.oci.content import Document
from lj_image.oci.digest import Digest
from lj_image.registry.faults import RegistryError
from lj_image.registry.publishing.place import Place, State


@dataclass(frozen=True, slots=True)
class Held:
    """What the tags of a place hold."""

    digests: Mapping[str, Digest | None]
    """In the order of the place's tags; None for one that does not exist."""

    def moved(self, wanted: Digest) -> dict[str, Digest]:
        """Return the tags that hold something else, and what."""
        return {tag: held for tag, held in self.digests.items() if held is not None and held != wanted}

    def missing(self, wanted: Digest) -> tuple[str, ...]:
        """Return the tags that are to be set."""
        return tuple(tag for tag, held in self.digests.items() if held != wanted)


def ask(place: Place) -> Held:
    """Ask what the tags hold; raises RegistryError."""
    destination = place.destination
    head = destination.registry.head
    return Held({tag: head(destination.repository, tag) for tag in place.tags})


def decide(held: Held, wanted: Digest, *, force_tag: bool) -> tuple[State, PublishError | None]:
    """Say what to do at a place: nothing, publish, or refuse, since the release's own tag never moves by itself."""
    own = next(iter(held.digests.values()))
    if own == wanted:
        return ("planned" if held.missing(wanted) else "already"), None
    if own is None or force_tag:
        return "planned", None
    return "refused", PublishError(
        f"the tag holds {own}; ours is {wanted}",
        hint="a published tag does not move by itself: publish under a new release, or write --force-tag",
    )


def set_tags(place: Place, root: Document, held: Held) -> None:
    """Let the tags stand for a document that is there, the release's own first, and read each back.

    Raises PublishError where a tag moved meanwhile, before or after it was set; RegistryError.
    """
    for tag in held.missing(root.descriptor.digest):
        _require_unmoved(place, tag, held.digests[tag], root.descriptor.digest)
        registry, repository = place.destination.registry, place.destination.repository
        registry.put_manifest(repository, tag, root.content, root.descriptor.media_type)
        _require_held(place, tag, root.descriptor.digest)


def _require_unmoved(place: Place, tag: str, before: Digest | None, wanted: Digest) -> None:
    now = place.destination.registry.head(place.destination.repository, tag)
    if now not in (before, wanted):
        raise _moved(f"the tag {tag} held {before or 'nothing'} when this began, and holds {now or 'nothing'} now")


def _require_held(place: Place, tag: str, wanted: Digest) -> None:
    """Read a tag back by its bytes: what a registry says of a digest is not always so."""
    try:
        held = place.destination.registry.manifest(place.destination.repository, tag).descriptor.digest
    except ArtifactError as error:
        raise RegistryError(error.message, hint=error.hint) from None
    if held != wanted:
        raise _moved(f"the tag {tag} was set to {wanted}, and the registry has {held}")


def _moved(words: str) -> PublishError:
    return PublishError(
        f"the tag moved meanwhile: {words}", hint="find out who else publishes this tag before you push again"
    )
