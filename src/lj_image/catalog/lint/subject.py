"""What rules look at: a family, one release file of it, or a release with all that it inherits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry, inherited_from
from lj_image.catalog.promises import Promised, promises
from lj_image.catalog.schema import BaseFile
from lj_image.errors import ManifestError

Scope = str | None
"""A variant's name, or None for what a release promises whatever the variant."""


class FamilyReadOnce(Family):
    """A family that keeps what it has read: its files do not change while they are checked."""

    @cached_property
    def _releases(self) -> dict[str, ReleaseEntry]:
        return {}

    @cached_property
    def _facts(self) -> dict[str, tuple[BaseFile, Path]]:
        return {}

    def release(self, name: str) -> ReleaseEntry:
        """Read one release, see Family; an error is not kept."""
        if name not in self._releases:
            self._releases[name] = super().release(name)
        return self._releases[name]

    def base_facts(self, name: str) -> tuple[BaseFile, Path]:
        """Read what is known of a base, see Family; an error is not kept."""
        if name not in self._facts:
            self._facts[name] = super().base_facts(name)
        return self._facts[name]


@dataclass(frozen=True)
class FamilySubject:
    """A family in its catalog."""

    catalog: Catalog
    family: Family


@dataclass(frozen=True)
class FileSubject:
    """One release file by itself, whether or not what it inherits from can be read."""

    catalog: Catalog
    family: Family
    entry: ReleaseEntry

    @property
    def name(self) -> str:
        """The release's name."""
        return self.entry.file.release


@dataclass(frozen=True)
class ReleaseSubject:
    """A release with what it inherits, and the release that its changes are told against."""

    catalog: Catalog
    family: Family
    chain: tuple[ReleaseEntry, ...]

    @property
    def entry(self) -> ReleaseEntry:
        """The release's own file."""
        return self.chain[-1]

    @property
    def name(self) -> str:
        """The release's name."""
        return self.entry.file.release

    @cached_property
    def before(self) -> tuple[ReleaseEntry, ...]:
        """The release before, with what it inherits: `previous` where the catalog has it; empty for none."""
        file = self.entry.file
        known = file.previous in self.family.release_names and file.previous != file.release
        name = file.previous if known else inherited_from(file)
        try:
            return self.family.chain(name) if name else ()
        except ManifestError:
            return ()  # said of that release itself

    @property
    def name_before(self) -> str:
        """The name of the release before; "" for none."""
        return self.before[-1].file.release if self.before else ""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All variants after None: what holds for each of them stands first."""
        return (None, *self.family.file.variants)

    @cached_property
    def promised(self) -> dict[Scope, dict[str, Promised]]:
        """Scope -> component -> what is promised; raises ManifestError for an unknown component."""
        return {scope: promises(self.family, self.chain, scope) for scope in self.scopes}

    @cached_property
    def promised_before(self) -> dict[Scope, dict[str, Promised]]:
        """The same of the release before; empty tables for none."""
        return {scope: promises(self.family, self.before, scope) for scope in self.scopes}

    def versions(self, component_id: str) -> tuple[str, ...]:
        """Return each version that is promised of a component, in whatever scope."""
        return _versions(self.promised, component_id)

    def versions_before(self, component_id: str) -> tuple[str, ...]:
        """Return each version that the release before promised of a component."""
        return _versions(self.promised_before, component_id)

    def comparable_scopes(self) -> Iterator[Scope]:
        """Yield the scopes in which both this release and the one before can be had."""
        for scope in self.scopes if self.before else ():
            if not any(is_unavailable(entry, scope) for entry in (self.entry, self.before[-1])):
                yield scope


def is_unavailable(entry: ReleaseEntry, scope: Scope) -> bool:
    """Say whether a release cannot be had in a variant."""
    own = entry.file.variants.get(scope) if scope is not None else None
    return own is not None and own.unavailable is not None


def _versions(table: dict[Scope, dict[str, Promised]], component_id: str) -> tuple[str, ...]:
    found = (promised[component_id].promise.version for promised in table.values() if component_id in promised)
    return tuple(dict.fromkeys(found))
