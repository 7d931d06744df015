"""Where a release is taken from, and which digest it has to be: a registry that holds it already, by name."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Protocol

from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import ArtifactError, PublishError, UsageError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Content
from lj_image.oci.digest import Digest
from lj_image.oci.reference import DOCKER_HUB, Reference
from lj_image.registry.access import is_loopback
from lj_image.registry.client import Intent, Registry
from lj_image.registry.content import content_at
from lj_image.registry.faults import RegistryError
from lj_image.registry.referrers import with_referrers
from lj_image.release.mirror import Proof
from lj_image.release.record import Record
from lj_image.release.references import targets
from lj_image.suggest import did_you_mean

PUBLIC = "public"
"""What to write for the public place."""
Say = Callable[[str], None]


class OpenRegistry(Protocol):
    """Opens registries, each with what this machine knows of it: its login, its certificates."""

    def __call__(self, host: str, *, intent: Intent, capabilities: Capabilities | None = None) -> Registry:
        """Open one; nothing is asked of it yet."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A digest that a record knows as its image."""

    digest: Digest
    image_id: str
    proven: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Content of a release, and what is known of it."""

    content: Content
    promise: Promise | None
    """None where no record says what it has to be."""

    @property
    def proof(self) -> Proof:
        """Whether it was verified; `unknown` where no record says so."""
        if self.promise is None:
            return "unknown"
        return "passed" if self.promise.proven else "none"


def source_of(named: str, release: Release, tag: str, config: Config) -> Reference:
    """Return where a release lies: in a region, at `public`, at a place of the config, or at HOST[/PATH].

    Raises UsageError for a name that is none of these.
    """
    places = config.values.endpoints.places
    if named == PUBLIC or named in release.endpoints.regions:
        regions = () if named == PUBLIC else (named,)
        (target,) = targets(release, tag, regions, named == PUBLIC, config)
        return Reference.parse(target.sent_to)
    if named in places:
        return reference_at(places[named], release.endpoints.repository, tag)
    if is_host(named):
        return reference_at(named, release.endpoints.repository, tag)
    known = (PUBLIC, *places, *release.endpoints.regions)
    hint = f"{did_you_mean(named, known, noun='places')}\nor name a registry: HOST[:PORT][/PATH]"
    raise UsageError(f"unknown place {named!r}", hint=hint)


def is_host(named: str) -> bool:
    """Say whether a text names a registry, and not a place by its name."""
    host = named.partition("/")[0]
    return "/" in named or "." in host or ":" in host or is_loopback(host)


def reference_at(place: str, repository: str, tag: str) -> Reference:
    """Return a release's reference at HOST[/PATH]; a path that ends with its repository is all of it."""
    host, _, path = place.rstrip("/").partition("/")
    whole = path == repository or path.endswith(f"/{repository}")
    return Reference.parse("/".join(filter(None, (host or DOCKER_HUB, path, "" if whole else repository))) + f":{tag}")


def promises(record: Record | None) -> tuple[Promise, ...]:
    """Return the digests that a record knows as its image: those that registries have first, the newest before.

    A build that is partial or was tried with --set is not the release, so what was published before it counts.
    """
    if record is None:
        return ()
    built = record.built
    if built is not None and (built.partial or built.overridden):
        built = None
    found = [
        Promise(Digest.parse(item.digest), item.image_id, item.verified or record.proves(item.image_id))
        for item in reversed(record.pushed)
        if built is None or item.image_id == built.image_id
    ]
    if built is not None and built.manifest is not None:
        found.append(Promise(Digest.parse(built.manifest), built.image_id, record.proves(built.image_id)))
    distinct: dict[Digest, Promise] = {}
    for item in found:
        distinct.setdefault(item.digest, item)
    return tuple(distinct.values())


@contextmanager
def content_from(
    named: str,
    release: Release,
    tag: str,
    config: Config,
    *,
    record: Record | None = None,
    digest: Digest | None = None,
    verify: bool = True,
    say: Say,
    open_registry: OpenRegistry = Registry,
    referrers: bool = False,
) -> Iterator[Found]:
    """Give a release's content as a registry holds it; the blobs can be read until the block ends.

    With `referrers` the registry is asked what it has about it: signatures, bills of materials.

    It is what the record says, or `digest`, or, where neither says anything, what the tag holds. Raises UsageError,
    PublishError where the two disagree or the record has no proof of it, ArtifactError where the source lacks it.
    """
    reference = source_of(named, release, tag, config)
    wanted = promised(promises(record), digest, tag, verify=verify)
    with open_registry(reference.host, intent="pull") as registry, _cut_off_by_ctrl_c(registry):
        found = _found(registry, reference, wanted, digest)
        if referrers:
            found = replace(found, content=with_referrers(registry, reference.repository, found.content))
        if found.promise is None and digest is None:
            say(f"{reference} holds {found.content.root.descriptor.digest}; no record of this machine says what it is")
        yield found


@contextmanager
def _cut_off_by_ctrl_c(registry: Registry) -> Iterator[None]:
    """Let Ctrl-C end what a source is waited for: threads that read it know nothing of signals, and are joined."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def cut_off(number: int, frame: FrameType | None) -> None:
        registry.connection.cut_off()
        before(number, frame)

    signal.signal(signal.SIGINT, cut_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def promised(known: tuple[Promise, ...], digest: Digest | None, tag: str, *, verify: bool) -> tuple[Promise, ...]:
    """Return which digests will do; nothing where no record says. Raises PublishError."""
    if digest is not None and known:
        chosen = tuple(item for item in known if item.digest == digest)
        if not chosen:
            raise PublishError(
                f"{digest} is not what the record of {tag} has: {' or '.join(str(item.digest) for item in known)}",
                hint="leave out --digest, or look at the record: lj-image history",
            )
        known = chosen
    if known and verify and not any(item.proven for item in known):
        raise PublishError(
            f"the image of {tag} is not verified, says the record of this machine",
            hint="run: lj-image verify (--no-verify lets it through, and the record will say so)",
        )
    return tuple(item for item in known if item.proven or not verify)


def _found(registry: Registry, reference: Reference, wanted: tuple[Promise, ...], digest: Digest | None) -> Found:
    for promise in wanted:
        if _is_there(registry, reference, promise.digest):
            return Found(content_at(registry, reference.at(promise.digest)), promise)
    if wanted:
        words = " or ".join(str(item.digest) for item in wanted)
        raise ArtifactError(
            f"{reference.name} does not have the image of the record, {words}; the tag {_held(registry, reference)}",
            hint="take it from another place: --from",
        )
    return Found(content_at(registry, reference.at(digest) if digest else reference), None)


def _is_there(registry: Registry, reference: Reference, digest: Digest) -> bool:
    try:
        return registry.head(reference.repository, str(digest)) is not None
    except RegistryError as error:
        raise ArtifactError(f"the source cannot be read: {error.message}", hint=error.hint) from None


def _held(registry: Registry, reference: Reference) -> str:
    held = registry.head(reference.repository, reference.wanted)
    return "does not exist" if held is None else f"holds {held}"
