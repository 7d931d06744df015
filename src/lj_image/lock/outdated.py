"""What the indexes have that is newer than what is locked, and what keeps each distribution where it is.

Each project is asked for once, in parallel; what a locked distribution requires of another is read from its file in
the store, else from the metadata that its index serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from packaging.utils import canonicalize_name

from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import LjImageError, LockError
from lj_image.lock.http import Client, Refused
from lj_image.lock.index import SimpleIndexes, index_addresses
from lj_image.lock.lock import Lock, LockedDistribution
from lj_image.lock.lockfile import command_for
from lj_image.lock.metadata import excluding, marker_environment, requirements_on, stored_metadata, unmet
from lj_image.lock.newer import Ground, Hold, Newer, newer_than
from lj_image.lock.progress import Progress, Silent
from lj_image.lock.store import ArtifactStore
from lj_image.lock.uvtool import OfferedFile
from lj_image.lock.why import extras_asked, named_distributions, overridden

THREADS: Final = 16
ATTEMPTS: Final = 2
"""A question that a person waits for: without a network the answer comes at once."""
Key = TypeVar("Key")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Standing:
    """How one locked distribution stands against its index."""

    name: str
    component: str
    index: str
    locked: str
    newest: str | None = None
    """The newest that the base could install; None when the index is not known here, or has nothing newer."""
    newest_elsewhere: str | None = None
    """A still newer one, which the base cannot install."""
    holds: tuple[Hold, ...] = ()
    unknown: str | None = None
    """Why the index could not be asked."""

    @property
    def is_outdated(self) -> bool:
        """Say whether there is something newer."""
        return self.newest is not None or self.newest_elsewhere is not None

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {
            "name": self.name,
            "component": self.component,
            "index": self.index,
            "locked": self.locked,
            "newest": self.newest,
            "newest_elsewhere": self.newest_elsewhere,
            "held_by": [{"kind": hold.kind, "text": hold.text} for hold in self.holds],
            "unknown": self.unknown,
        }


def outdated(
    release: Release,
    lock: Lock,
    config: Config,
    store: ArtifactStore,
    *,
    every: bool = False,
    pre: bool = False,
    progress: Progress | None = None,
) -> tuple[Standing, ...]:
    """Return how what the components name stands, with `every` each locked distribution; in the order of the lock.

    Raises ArtifactError when an index cannot be asked; one that the config does not know is told in its lines.
    """
    named = named_distributions(release)
    items = [item for item in lock.distributions if every or item.name in named]
    progress = progress or Silent()
    progress.start(0, f"asking for newer versions of {len(items)} distributions")
    try:
        with Client(attempts=ATTEMPTS) as client:
            asker = _Asker(client, SimpleIndexes(config, client), config, store)
            offers = _in_parallel(client, asker.files, items)
            ground = Ground.of(release)
            found = {item: _newer(item, offers[item], ground, pre) for item in items}
            newer = {item: one for item, one in found.items() if one and one.fitting}
            metadata = _in_parallel(client, asker.metadata, _parents(lock, newer))
            holds = _Holds(release, lock, named, {item.name: text for item, text in metadata.items()})
            against = {item: holds.against(item, str(one.fitting)) for item, one in newer.items()}
            free = [item for item in newer if not against[item]]
            own = _in_parallel(client, lambda item: asker.served(newer[item].file, item.index), free)
    finally:
        progress.done()
    against |= {item: holds.within(item.name, str(newer[item].fitting), text) for item, text in own.items() if text}
    return tuple(_standing(item, named, offers[item], found[item], against.get(item, ())) for item in items)


def not_asked(release: Release) -> tuple[str, ...]:
    """Return the components that no index lists the versions of, such as `cuda (base)`."""
    return tuple(f"{item.id} ({item.source.kind})" for item in release.components if item.source.kind != "pip")


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks the indexes; shared by the threads."""

    client: Client
    indexes: SimpleIndexes
    config: Config
    store: ArtifactStore

    def files(self, item: LockedDistribution) -> tuple[OfferedFile, ...] | LockError:
        """Return what all addresses of an index offer, or why it has no address."""
        try:
            addresses = index_addresses(item.index, self.config)
        except LockError as error:
            return error
        return tuple(file for address in addresses for file in self.indexes.files(item.name, item.index, address))

    def metadata(self, item: LockedDistribution) -> str | None:
        """Return the metadata of a locked file: from the store, else as its index serves it; None without either."""
        stored = stored_metadata(item.artifact, self.store)
        if stored is not None or item.artifact.kind == "sdist":
            return stored
        try:
            addresses = index_addresses(item.index, self.config)
            offered = (file for address in addresses for file in self.indexes.files(item.name, item.index, address))
            found = next((file for file in offered if file.sha256 == item.artifact.sha256), None)
        except LjImageError:  # less is said then; what must be known was asked before
            return None
        return self.served(found, item.index)

    def served(self, file: OfferedFile | None, index: str) -> str | None:
        """Return the metadata that an index serves apart from its file (PEP 658), if it does."""
        if file is None or not file.has_metadata:
            return None
        import httpx

        addresses = index_addresses(index, self.config)
        owner = next((item for item in addresses if item.auth_for(file.url)), addresses[-1])
        try:
            return self.client.page(f"{file.url}.metadata", owner, "*/*").text
        except (Refused, httpx.HTTPError):
            return None


def _in_parallel(client: Client, ask: Callable[[Key], Answer], keys: Iterable[Key]) -> dict[Key, Answer]:
    """Put all questions; the first failure, or Ctrl-C, ends the others at once."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="outdated")
    try:
        futures = {key: pool.submit(ask, key) for key in keys}
        done, _ = wait(futures.values(), return_when=FIRST_EXCEPTION)
        failure = next((error for future in done if (error := future.exception())), None)
        if failure is not None:
            raise failure
    except BaseException:
        client.cut_off()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return {key: future.result() for key, future in futures.items()}


def _newer(
    item: LockedDistribution, offered: tuple[OfferedFile, ...] | LockError, ground: Ground, pre: bool
) -> Newer | None:
    return None if isinstance(offered, LockError) else newer_than(item.version, offered, ground, pre=pre)


def _parents(lock: Lock, items: Iterable[LockedDistribution]) -> tuple[LockedDistribution, ...]:
    names = {parent for item in items for parent in item.required_by}
    return tuple(item for item in lock.distributions if item.name in names)


@dataclass(frozen=True, slots=True)
class _Holds:
    """Finds what keeps a distribution from one version."""

    release: Release
    lock: Lock
    named: Mapping[str, str]
    metadata: Mapping[str, str | None]

    def against(self, item: LockedDistribution, version: str) -> tuple[Hold, ...]:
        """Return everything that says no to a version."""
        if item.name in overridden(self.release):  # what others require of it does not count
            return (Hold("override", f"the release says {item.version}, for everything"),)
        own = (Hold("release", f"the release says {item.version}"),) if item.name in self.named else ()
        return (*own, *(hold for parent in item.required_by if (hold := self._of(parent, item.name, version))))

    def within(self, name: str, version: str, metadata: str) -> tuple[Hold, ...]:
        """Return what a newer version itself requires, and the lock does not have."""
        locked = {item.name: item.version for item in self.lock.distributions}
        extras = extras_asked(self.release).get(name, ())
        refused = unmet(metadata, locked, marker_environment(self.release), extras)
        return tuple(
            Hold(
                "requirement",
                f"{version} requires {item.name}{item.specifier}; {locked[canonicalize_name(item.name)]} is locked",
            )
            for item in refused
        )

    def _of(self, parent: str, name: str, version: str) -> Hold | None:
        metadata, asking = self.metadata.get(parent), self.lock.distribution(parent)
        if metadata is None or asking is None:
            return Hold("unknown", f"perhaps {parent}: what it requires is not known here")
        extras = extras_asked(self.release).get(parent, ())
        asked = requirements_on(name, metadata, marker_environment(self.release), extras)
        refusing = excluding(asked, version)
        text = ", ".join(sorted({f"{item.name}{item.specifier}" for item in refusing}))
        return Hold("requirement", f"{parent} {asking.version} requires {text}") if text else None


def _standing(
    item: LockedDistribution,
    named: Mapping[str, str],
    offered: tuple[OfferedFile, ...] | LockError,
    newer: Newer | None,
    against: tuple[Hold, ...],
) -> Standing:
    component = named.get(item.name, item.component)
    if isinstance(offered, LockError) or newer is None:
        unknown = offered.message if isinstance(offered, LockError) else None
        return Standing(item.name, component, item.index, item.version, unknown=unknown)
    holds = (*against, *((newer.reason,) if newer.reason else ()))
    return Standing(item.name, component, item.index, item.version, newer.fitting, newer.elsewhere, holds)


def way_forward(release: Release, standing: Standing) -> str | None:
    """Return the command that takes the newer version, when nothing that is known says no."""
    if standing.newest is None or any(hold.kind not in ("python", "platform") for hold in standing.holds):
        return None
    return f"{command_for(release)} --upgrade {standing.name}"
