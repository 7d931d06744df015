"""Releases + places -> what each tag holds there, and whether that is what the record says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from lj_image.catalog.release import Release
from lj_image.errors import LjImageError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference
from lj_image.registry.client import Registry
from lj_image.registry.content import content_at
from lj_image.registry.faults import RegistryError
from lj_image.release.asking import OpenRegistry, ask_all, open_briefly
from lj_image.release.record import Record, Records
from lj_image.release.references import Target
from lj_image.release.source import promises

State = Literal["equal", "missing", "drifted", "unrecorded", "unreachable", "refused"]
"""`equal` to the record; `drifted`: another digest; `unrecorded`: there, and no record here says what it has to be."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the records of this machine say of one release, and of its neighbours."""

    digests: tuple[str, ...] = ()
    """By which its image is known, the newest first."""
    by_reference: Mapping[str, str] = field(default_factory=dict)
    """What was pushed under a reference."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Digests of other releases -> whose, such as 25.01-open."""

    def expected(self, reference: str) -> tuple[str, ...]:
        """Return the digests that a reference may hold; nothing where no record says."""
        return (self.by_reference[reference],) if reference in self.by_reference else self.digests


@dataclass(frozen=True, slots=True)
class Asked:
    """A release in a variant, and the places that are asked for it."""

    release: Release
    targets: tuple[Target, ...]
    known: Known


@dataclass(frozen=True, slots=True)
class TagStatus:
    """What a tag holds at a place."""

    tag: str
    moves: bool
    """Whether it follows the newest release, or is the release's own."""
    state: State
    digest: str | None = None
    holds: str | None = None
    """The other release whose digest that is, such as 25.01-open, as far as records of this machine know."""

    @property
    def is_wrong(self) -> bool:
        """Whether the registry answered, and the tag is not what the record says."""
        return self.state in ("missing", "drifted")


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """What one place has of one release."""

    target: Target
    tags: tuple[TagStatus, ...]
    """The release's own first."""
    lacks: tuple[str, ...] | None = None
    """What is missing below the release's tag, by digest; None where that was not asked."""
    message: str = ""
    """Why a place did not answer, or cannot be read."""
    hint: str | None = None

    @property
    def own(self) -> TagStatus:
        """The release's own tag."""
        return self.tags[0]

    @property
    def answered(self) -> bool:
        """Whether every tag could be asked for."""
        return all(item.state not in ("unreachable", "refused") for item in self.tags)

    @property
    def is_wrong(self) -> bool:
        """Whether a tag is not what the record says, or stands for something incomplete."""
        return bool(self.lacks) or any(item.is_wrong for item in self.tags)

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        return {
            "place": self.target.endpoint.name,
            "network": self.target.endpoint.network,
            "region": self.target.endpoint.region,
            "reference": self.target.reference,
            "sent_to": self.target.sent_to,
            "state": self.own.state,
            "digest": self.own.digest,
            "tags": [
                {"tag": item.tag, "moves": item.moves, "state": item.state, "digest": item.digest, "holds": item.holds}
                for item in self.tags
            ],
            "complete": None if self.lacks is None else not self.lacks,
            "lacks": list(self.lacks or ()),
            "message": self.message,
            "hint": self.hint,
        }


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """What all places have of one release."""

    asked: Asked
    places: tuple[PlaceStatus, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        release = self.asked.release
        return {
            "image": release.image,
            "release": release.name,
            "variant": release.variant,
            "tag": release.tag,
            "recorded": list(self.asked.known.digests),
            "places": [place.to_json() for place in self.places],
        }


def exit_code(found: Sequence[ReleaseStatus]) -> int:
    """Return 1 where a tag is not what the record says, 3 where all that answered is right, else 0."""
    places = [place for item in found for place in item.places]
    if any(place.is_wrong for place in places):
        return 1
    return 0 if all(place.answered for place in places) else 3


def known_of(records: Records, key: str) -> Known:
    """Return what this machine's records say of a release; one that is damaged says nothing."""
    own, others = Known(), dict[str, str]()
    for path in sorted(records.folder.glob("[!.]*.json")):
        with suppress(LjImageError, OSError):
            if (record := records.read(path.stem)) is not None and path.stem == key:
                own = _known(record)
            elif record is not None:
                others |= dict.fromkeys(_all_digests(record), path.stem)
    mine = {*own.digests, *own.by_reference.values()}
    return Known(own.digests, own.by_reference, {digest: name for digest, name in others.items() if digest not in mine})


def _known(record: Record) -> Known:
    digests = tuple(str(item.digest) for item in promises(record))
    return Known(digests, {item.reference: item.digest for item in record.pushed})


def _all_digests(record: Record) -> Iterator[str]:
    """Yield every digest that a release ever had, as far as its record remembers."""
    yield from (item.digest for item in record.retracted)
    yield from (str(item.digest) for item in promises(record))
    yield from (item.digest for item in record.pushed)


def status(
    asked: Sequence[Asked], *, deep: bool = False, open_registry: OpenRegistry = open_briefly
) -> tuple[ReleaseStatus, ...]:
    """Ask every place for every tag, all places at once; with `deep`, also for all that the tags stand for.

    A place that does not answer is asked no second question, and is no error. Raises Interrupted on Ctrl-C.
    """
    questions: dict[str, list[tuple[Asked, Target]]] = {}
    for item in asked:
        for target in item.targets:
            questions.setdefault(Reference.parse(target.sent_to).name, []).append((item, target))

    def ask(registry: Registry, about: list[tuple[Asked, Target]]) -> list[tuple[Asked, PlaceStatus]]:
        return list(_place(registry, about, deep=deep))

    answers = ask_all(tuple(questions.values()), _host, ask, open_registry)
    by_asked = {(id(item), place.target): place for answer in answers for item, place in answer}
    return tuple(ReleaseStatus(item, tuple(by_asked[id(item), target] for target in item.targets)) for item in asked)


def _host(about: list[tuple[Asked, Target]]) -> tuple[str, Capabilities]:
    _, target = about[0]
    return Reference.parse(target.sent_to).host, target.endpoint.capabilities


def _place(registry: Registry, about: list[tuple[Asked, Target]], *, deep: bool) -> Iterator[tuple[Asked, PlaceStatus]]:
    """Yield what one repository has of each release; the first that shows it unreachable speaks for the others."""
    unreached: LjImageError | None = None
    for asked, target in about:
        if unreached is None:
            try:
                yield asked, _looked_at(registry, asked, target, deep=deep)
                continue
            except LjImageError as error:
                if not _is_silence(error):
                    yield asked, _without_answer(target, "refused", error)
                    continue
                unreached = error
        yield asked, _without_answer(target, "unreachable", unreached)


def _is_silence(error: LjImageError) -> bool:
    return isinstance(error, RegistryError) and error.status is None


def _looked_at(registry: Registry, asked: Asked, target: Target, *, deep: bool) -> PlaceStatus:
    reference = Reference.parse(target.sent_to).tagged()
    tags = tuple(
        _judged(asked.known, target, tag, registry.head(reference.repository, tag), moves=bool(position))
        for position, tag in enumerate(dict.fromkeys((reference.wanted, *target.endpoint.moving_tags)))
    )
    if not deep or tags[0].digest is None:
        return PlaceStatus(target, tags)
    try:
        return PlaceStatus(target, tags, _lacking(registry, reference.at(Digest.parse(tags[0].digest))))
    except LjImageError as error:  # the tag is there, and what it stands for cannot be had
        return PlaceStatus(target, tags, (tags[0].digest,), error.message, error.hint)


def _judged(known: Known, target: Target, tag: str, held: Digest | None, *, moves: bool) -> TagStatus:
    digest = None if held is None else str(held)
    expected = known.expected(target.reference)
    if digest is None:
        return TagStatus(tag, moves, "missing")
    if digest in expected:
        return TagStatus(tag, moves, "equal", digest)
    return TagStatus(tag, moves, "drifted" if expected else "unrecorded", digest, known.others.get(digest))


def _lacking(registry: Registry, reference: Reference) -> tuple[str, ...]:
    """Return the digests of blobs that a repository lacks; raises ArtifactError where a document cannot be read."""
    blobs = content_at(registry, reference).blobs
    digests = (blob.descriptor.digest for blob in blobs)
    return tuple(str(digest) for digest in digests if not registry.has_blob(reference.repository, digest))


def _without_answer(target: Target, state: State, error: LjImageError) -> PlaceStatus:
    tag = Reference.parse(target.sent_to).tagged().wanted
    return PlaceStatus(target, (TagStatus(tag, False, state),), None, error.message, error.hint)
