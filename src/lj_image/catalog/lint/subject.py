"""What rules look at: a family, one release file of it, or a release with all that it inherits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lj_image.catalog import schema
from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry, inherited_from
from lj_image.catalog.lint.mentions import MentionFinder
from lj_image.catalog.promises import Promised, canonical_id, promises
from lj_image.documents.nodes import KeyPath
from lj_image.errors import Location, ManifestError

Scope = str | None
"""A variant's name, or None for what a release promises whatever the variant."""


class FamilyReadOnce(Family):
    """A family that keeps what it has read, since its files do not change while they are checked.

    Its chains lack the names of components that are unknown or stand twice: those are said of each file by itself, and
    are not to hide what else is wrong with it and with its heirs.
    """

    @cached_property
    def mentions(self) -> MentionFinder:
        """What finds the family's components in texts."""
        return MentionFinder(self.file.components)

    @cached_property
    def _releases(self) -> dict[str, ReleaseEntry]:
        return {}

    @cached_property
    def _usable_entries(self) -> dict[str, ReleaseEntry]:
        return {}

    @cached_property
    def _facts(self) -> dict[str, tuple[schema.BaseFile, Path]]:
        return {}

    def release(self, name: str) -> ReleaseEntry:
        """Read one release, see Family; an error is not kept."""
        if name not in self._releases:
            self._releases[name] = super().release(name)
        return self._releases[name]

    def chain(self, name: str) -> tuple[ReleaseEntry, ...]:
        """Return a release and those it inherits from, see Family, each without names that mean nothing."""
        return tuple(map(self._usable, self.chain_as_written(name)))

    def chain_as_written(self, name: str) -> tuple[ReleaseEntry, ...]:
        """Return a release and those it inherits from with all their names, see Family."""
        return super().chain(name)

    def _usable(self, entry: ReleaseEntry) -> ReleaseEntry:
        name = entry.file.release
        if name not in self._usable_entries:
            self._usable_entries[name] = ReleaseEntry(_with_known_names(self, entry.file), entry.document)
        return self._usable_entries[name]

    def base_facts(self, name: str) -> tuple[schema.BaseFile, Path]:
        """Read what is known of a base, see Family; an error is not kept."""
        if name not in self._facts:
            self._facts[name] = super().base_facts(name)
        return self._facts[name]


@dataclass(frozen=True)
class FamilySubject:
    """A family in its catalog."""

    catalog: Catalog
    family: FamilyReadOnce


@dataclass(frozen=True)
class FileSubject:
    """One release file by itself, whether or not what it inherits from can be read."""

    catalog: Catalog
    family: FamilyReadOnce
    entry: ReleaseEntry

    @property
    def name(self) -> str:
        """The release's name."""
        return self.entry.file.release


@dataclass(frozen=True)
class ReleaseSubject:
    """A release with what it inherits, and the release that its changes are told against."""

    catalog: Catalog
    family: FamilyReadOnce
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


def place_in_list(entry: ReleaseEntry, path: KeyPath, name: str) -> Location:
    """Return where a name stands in a list of the file as it was written, before other names were taken away."""
    names: Any = entry.document.data
    for part in path:
        names = names[part]
    return entry.document.place_of((*path, names.index(name)))


def _versions(table: dict[Scope, dict[str, Promised]], component_id: str) -> tuple[str, ...]:
    found = (promised[component_id].promise.version for promised in table.values() if component_id in promised)
    return tuple(dict.fromkeys(found))


def _with_known_names(family: Family, file: schema.ReleaseFile) -> schema.ReleaseFile:
    """Return a release file without names of components that are unknown, or are the second for their component."""
    return file.model_copy(
        update={
            "components": _known_promises(family, file.components),
            "unlisted": list(_known(family, file.unlisted)),
            "variants": {
                variant: own.model_copy(update={"components": _known_promises(family, own.components)})
                for variant, own in file.variants.items()
            },
            "highlights": [
                item
                if isinstance(item, str)
                else item.model_copy(update={"components": list(_known(family, item.components))})
                for item in file.highlights
            ],
        }
    )


def _known_promises(family: Family, components: Mapping[str, str | schema.Promise]) -> dict[str, str | schema.Promise]:
    return {name: components[name] for name in _known(family, components)}


def _known(family: Family, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        try:
            component_id = canonical_id(family, name)
        except ManifestError:
            continue
        if component_id not in seen:
            seen.add(component_id)
            yield name
