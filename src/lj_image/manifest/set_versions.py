"""Versions are set in a release's own file; comments, order, quotes and spacing stay as a person left them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry, shown
from lj_image.catalog.promises import canonical_id, promises
from lj_image.catalog.schema import ReleaseFile, VariantPromises
from lj_image.documents.models import validate
from lj_image.documents.nodes import Document, parse_document
from lj_image.errors import Location, ManifestError, UsageError
from lj_image.manifest.text_edit import add_scalar, newline_of, set_scalar
from lj_image.suggest import did_you_mean

_BOM = "\ufeff"
"""What some editors write at the start of a file; kept."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What a component was promised at before, and is now."""

    component: str
    before: str | None
    after: str
    inherited: bool
    """The version before stands elsewhere: in an earlier release, or in what holds for all variants."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A file's text before and after, not yet written."""

    path: Path
    before: str
    after: str
    changes: tuple[VersionChange, ...]
    kept_by: Mapping[str, tuple[str, ...]]
    """Component -> variants that promise a version of their own, which stays."""

    def diff(self) -> str:
        """Return the change as a unified diff."""
        name = shown(self.path)
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), f"a/{name}", f"b/{name}", lineterm="")
        return "".join(f"{line}\n" for line in lines)


def set_versions(catalog: Catalog, release: str, versions: Mapping[str, str], variant: str | None = None) -> Edit:
    """Return the edit that gives a release's components these versions; nothing is written.

    `versions` is by component, in any of its spellings; with `variant`, they hold in that variant only. Raises
    UsageError and ManifestError: an unknown component or variant, or a file that cannot be edited safely.
    """
    family, name = catalog.find(release)
    chain = family.chain(name)
    if variant is not None and variant not in family.file.variants:
        raise UsageError(f"no variant {variant!r}", hint=did_you_mean(variant, family.file.variants, noun="variants"))
    wanted = _by_id(family, versions)
    path = family.folder / "releases" / f"{name}.yaml"
    before = path.read_bytes().decode()
    text = before.removeprefix(_BOM)
    edit = _Editing(family, parse_document(text, shown(path)), variant)
    effective = promises(family, chain, variant)
    if variant is None:
        _refuse_variants_own(family, chain, wanted, release)
    kept = {} if variant else _kept_by(family, chain[-1].file, wanted)
    changes = []
    for component, version in wanted.items():
        edit.refuse_unlisted(component)
        old = effective.get(component)
        changes.append(
            VersionChange(component, old.promise.version if old else None, version, edit.spelled(component) is None)
        )
        text = edit.applied(text, component, version)
    edit.require_only(text, wanted)
    bom = _BOM if before.startswith(_BOM) else ""
    return Edit(path, before, bom + text, tuple(changes), kept)


def _by_id(family: Family, versions: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, version in versions.items():
        component = canonical_id(family, name)
        if component in found:
            raise UsageError(f"{component} is given twice", hint="name each component once")
        found[component] = version
    return found


def _refuse_variants_own(
    family: Family, chain: tuple[ReleaseEntry, ...], wanted: Mapping[str, str], release: str
) -> None:
    """Raise UsageError for a component that only a variant promises: all others would get it, too."""
    general = promises(family, chain)
    for component in wanted.keys() - general.keys():
        variants = [name for name in family.file.variants if component in promises(family, chain, name)]
        if variants:
            raise UsageError(
                f"{component} is promised in {' and '.join(variants)} only",
                hint=f"run: lj-image set {release} --variant {variants[0]} {component}={wanted[component]}\n"
                "or write it under `components:` by hand, to promise it in every variant",
            )


def _kept_by(family: Family, own: ReleaseFile, wanted: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return component -> variants that go on with a version of their own."""
    found = {
        component: tuple(
            name for name, entry in own.variants.items() if _spelled(family, entry.components, component) is not None
        )
        for component in wanted
    }
    return {component: variants for component, variants in found.items() if variants}


def _spelled(family: Family, components: Mapping[str, Any], component: str) -> str | None:
    """Return how a component is spelled among the keys of a file, or None where it is not there."""
    return next((name for name in components if canonical_id(family, name) == component), None)


@dataclass(frozen=True, slots=True)
class _Editing:
    """One release's file, with the names that its family knows."""

    family: Family
    document: Document
    variant: str | None

    @property
    def path(self) -> tuple[str, ...]:
        return ("variants", self.variant, "components") if self.variant else ("components",)

    def spelled(self, component: str) -> str | None:
        """Return how the file itself spells a component, or None where it is inherited or new."""
        return _spelled(self.family, _mapping(self.document.data, self.path), component)

    def applied(self, text: str, component: str, version: str) -> str:
        """Return the text with one component's version."""
        name = self.spelled(component)
        if name is None:
            return add_scalar(text, self.path, component, version, self.rank)
        is_long = isinstance(_mapping(self.document.data, self.path)[name], dict)
        return set_scalar(text, (*self.path, name, *(("version",) if is_long else ())), version)

    def rank(self, path: tuple[str, ...], key: str) -> int:
        """Return where a key stands: in the schema's order, in the family's for variants and components."""
        match path:
            case ():
                order = tuple(ReleaseFile.model_fields)
            case ("variants",):
                order = tuple(self.family.file.variants)
            case ("variants", _):
                order = tuple(VariantPromises.model_fields)
            case _:
                order = tuple(self.family.file.components)
                key = self._id_or_name(key)
        return order.index(key) if key in order else -1

    def _id_or_name(self, name: str) -> str:
        components = self.family.file.components
        return next((item for item, entry in components.items() if name in entry.aliases), name)

    def refuse_unlisted(self, component: str) -> None:
        """Raise ManifestError for a component that this very file takes out of the release."""
        unlisted = self.document.data.get("unlisted") or ()
        for position, name in enumerate(unlisted):
            if canonical_id(self.family, name) == component:
                raise ManifestError(
                    f"the release does not promise {component}: its `unlisted` names it",
                    hint="delete it there first",
                    location=self.document.place_of(("unlisted", position)),
                )

    def require_only(self, text: str, wanted: Mapping[str, str]) -> None:
        """Raise ManifestError unless the text says what the file said before, with the wanted versions."""
        expected = copy.deepcopy(self.document.data)
        for component, version in wanted.items():
            _set(expected, self.path, self.spelled(component) or component, version)
        found = parse_document(text, self.document.file)
        if found.data != expected:
            raise ManifestError(
                "the file is written in a way that cannot be edited safely",
                hint="edit it by hand: " + ", ".join(f"{name}: {version}" for name, version in wanted.items()),
                location=Location(self.document.file),
            )
        validate(found, ReleaseFile)


def _mapping(values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """Return the mapping at a path, or an empty one where the way ends before."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def _set(values: dict[str, Any], path: tuple[str, ...], name: str, version: str) -> None:
    for key in path:
        values[key] = values.get(key) or {}
        values = values[key]
    if isinstance(values.get(name), dict):
        values[name]["version"] = version
    else:
        values[name] = version


def _lines(text: str) -> list[str]:
    return text.removesuffix(newline_of(text)).split("\n")
