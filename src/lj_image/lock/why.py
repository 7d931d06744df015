"""Why a distribution is in a lock: the chains of requirements that lead to it from the components. Needs no network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Final, Literal

from packaging.requirements import Requirement

from lj_image.catalog.names import normalised
from lj_image.catalog.release import PipSource, Release
from lj_image.errors import UsageError
from lj_image.lock.lock import Lock, LockedDistribution
from lj_image.lock.metadata import (
    excluding,
    extras_behind,
    extras_in_use,
    marker_environment,
    provided_extras,
    requirements_on,
    stored_metadata,
)
from lj_image.lock.store import ArtifactStore
from lj_image.suggest import closest

MOST: Final = 200
"""Chains shown with --all; nobody reads more, and a dense graph has millions."""
_MOST_STEPS: Final = 50_000
Graph = Mapping[str, tuple[str, ...]]
"""Distribution -> those that require it."""
Way = tuple[str, ...]
"""Names of distributions, each of which requires the next."""


@dataclass(frozen=True, slots=True)
class Link:
    """One distribution on the way from a component to another distribution."""

    name: str
    version: str
    requirement: str | None = None
    """How the one before asks for it, such as `numpy<2.0`; None when that is not known here."""
    followed: bool = True
    """Whether its version is one that was asked for; an override may say otherwise."""
    extras: tuple[str, ...] = ()
    """Extras of the one before by which alone it comes; for the first link, those that the component asks for."""

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {
            "name": self.name,
            "version": self.version,
            "requirement": self.requirement,
            "followed": self.followed,
            "extras": list(self.extras),
        }


@dataclass(frozen=True, slots=True)
class Chain:
    """A way from a component to a distribution; the first link is what the component names."""

    component: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one thing is in the image."""

    name: str
    version: str
    origin: Literal["lock", "base", "component"]
    """`component`: one that brings no distribution."""
    component: str | None
    """The one whose layer holds it, or `shared`."""
    remark: str
    chains: tuple[Chain, ...] = ()
    """Shortest first."""
    more: bool = False
    """Whether there are more chains than are shown."""

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        chains = [
            {"component": chain.component, "links": [link.to_json() for link in chain.links]} for chain in self.chains
        ]
        return {
            "name": self.name,
            "version": self.version,
            "origin": self.origin,
            "component": self.component,
            "remark": self.remark,
            "chains": chains,
            "more": self.more,
        }


def why(
    release: Release, lock: Lock, name: str, store: ArtifactStore, *, every: bool = False
) -> tuple[Explanation, ...]:
    """Explain a distribution, or each of those that a component of that name asks for.

    Without `every`, the shortest chain from each component. Raises UsageError for a name that is nowhere in the image.
    """
    wanted = normalised(name)
    component = release.component(name)
    if (item := lock.distribution(wanted)) is not None:
        return (_of_distribution(release, lock, item, store, every),)
    if component is not None and isinstance(component.source, PipSource) and component.source.project is not None:
        remark = f"a project of ours: its wheel is made from {component.source.project.name}/, and no lock names it"
        return (Explanation(component.id, component.version, "component", component.id, remark),)
    if component is not None and isinstance(component.source, PipSource):
        found = (lock.distribution(normalised(own)) for own, _ in component.source.distributions)
        return tuple(_of_distribution(release, lock, item, store, every) for item in found if item)
    if component is not None:
        remark = f"a component of kind {component.source.kind}: no distribution of the lock comes with it"
        return (Explanation(component.id, component.version, "component", component.id, remark),)
    base = {normalised(own): version for own, version in release.base.facts.packages.items()}
    if wanted in base:
        protected = " and is protected: nothing may replace it" if wanted in map(normalised, release.protected) else ""
        remark = f"comes with the base {release.base.facts.name}{protected}"
        return (Explanation(wanted, base[wanted], "base", None, remark),)
    known = {*(item.name for item in lock.distributions), *base, *(item.id for item in release.components)}
    close = closest(name, sorted(known))
    hint = f"did you mean {' or '.join(close)}?" if close else "the lock itself lists every name"
    raise UsageError(f"nothing in {lock.key} is called {name!r}", hint=hint)


def shortest(graph: Graph, named: Mapping[str, str], name: str) -> tuple[Way, ...]:
    """Return a shortest way to `name` from each distribution that a component names, as names from there to here.

    A way ends at the first such distribution that it meets: what requires that one is another question.

    >>> shortest({"ray": (), "numpy": ("pandas", "ray"), "pandas": ("ray",)}, {"ray": "ray"}, "numpy")
    (('ray', 'numpy'),)
    """
    seen: set[str] = {name}
    found: list[Way] = []
    waiting: deque[Way] = deque([(name,)])
    while waiting:
        way = waiting.popleft()
        if way[0] in named:
            found.append(way)
            if len(way) > 1:
                continue
        fresh = [parent for parent in sorted(graph.get(way[0], ())) if parent not in seen]
        seen.update(fresh)
        waiting.extend((parent, *way) for parent in fresh)
    return tuple(found)


def all_ways(graph: Graph, named: Mapping[str, str], name: str) -> Iterator[Way]:
    """Yield every way without a loop, shortest first; gives up after a while in a graph that is too dense to print."""
    waiting: deque[Way] = deque([(name,)])
    for _ in range(_MOST_STEPS):
        if not waiting:
            return
        way = waiting.popleft()
        if way[0] in named:
            yield way
            if len(way) > 1:
                continue
        waiting.extend((parent, *way) for parent in sorted(graph.get(way[0], ())) if parent not in way)


def named_distributions(release: Release) -> dict[str, str]:
    """Return the distributions that components name, by their normalised names -> the component's id."""
    return {
        normalised(name): component.id
        for component in release.components
        if isinstance(component.source, PipSource) and component.source.project is None
        for name, _ in component.source.distributions
    }


def extras_asked(release: Release) -> dict[str, tuple[str, ...]]:
    """Return the extras that components ask for: distribution -> extras, all by normalised names."""
    found: dict[str, set[str]] = {}
    for component in release.components:
        if isinstance(component.source, PipSource) and component.source.extras:
            for name, _ in component.source.distributions:
                found.setdefault(normalised(name), set()).update(component.source.extras)
    return {name: tuple(sorted(extras)) for name, extras in found.items()}


def overridden(release: Release) -> frozenset[str]:
    """Return the distributions whose version wins over every requirement, by their normalised names."""
    return frozenset(
        normalised(name)
        for component in release.components
        if isinstance(component.source, PipSource) and component.source.overrides
        for name, _ in component.source.distributions
    )


def _of_distribution(
    release: Release, lock: Lock, item: LockedDistribution, store: ArtifactStore, every: bool
) -> Explanation:
    named = named_distributions(release)
    graph = {other.name: other.required_by for other in lock.distributions}
    found = list(islice(all_ways(graph, named, item.name), MOST + 1)) if every else shortest(graph, named, item.name)
    words = _Words(release, lock, store)
    chains = tuple(Chain(named[way[0]], words.links(way)) for way in found[:MOST])
    return Explanation(
        item.name, item.version, "lock", item.component, _remark(release, item, named), chains, len(found) > MOST
    )


def _remark(release: Release, item: LockedDistribution, named: Mapping[str, str]) -> str:
    owner = named.get(item.name)
    if owner is None:
        return "nothing that is locked requires it" if not item.required_by else ""
    wins = ", an override: it wins over what others require" if item.name in overridden(release) else ""
    return f"the release itself says {item.version}{wins} (component {owner})"


class _Words:
    """Finds how one locked distribution asks for another, in the files that are here; each is read once."""

    def __init__(self, release: Release, lock: Lock, store: ArtifactStore) -> None:
        self._lock = lock
        self._store = store
        self._environment = marker_environment(release)
        self._extras = extras_asked(release)
        self._read: dict[str, str | None] = {}

    def links(self, way: Way) -> tuple[Link, ...]:
        """Return the links of a way."""
        first = self._lock.distribution(way[0])
        assert first is not None, "a way goes through locked distributions"
        return (
            Link(first.name, first.version, extras=self._extras.get(first.name, ())),
            *(self._link(one, next_one) for one, next_one in pairwise(way)),
        )

    def _link(self, parent: str, name: str) -> Link:
        item = self._lock.distribution(name)
        assert item is not None, "a way goes through locked distributions"
        metadata = self._metadata(parent)
        wanted = self._extras.get(parent, ())
        asked = requirements_on(name, metadata, self._environment, wanted) if metadata else ()
        text = ", ".join(sorted({f"{one.name}{_extras(one.extras)}{one.specifier}" for one in asked})) or None
        extras = self._extras_behind(metadata, asked, wanted) if metadata else ()
        return Link(name, item.version, text, not excluding(asked, item.version), extras)

    def _extras_behind(self, metadata: str, asked: Iterable[Requirement], wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the extras by which alone something is required; nothing where one requirement needs none."""
        used = extras_in_use(metadata, self._environment, wanted)
        behind = [extras_behind(item, self._environment, used or provided_extras(metadata)) for item in asked]
        return tuple(sorted({name for names in behind for name in names})) if all(behind) else ()

    def _metadata(self, name: str) -> str | None:
        if name not in self._read:
            item = self._lock.distribution(name)
            self._read[name] = stored_metadata(item.artifact, self._store) if item else None
        return self._read[name]


def _extras(names: set[str]) -> str:
    return f"[{','.join(sorted(names))}]" if names else ""
