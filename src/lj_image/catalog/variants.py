"""Which variant a command means when it does not say: the first for its platform whose sources are configured.

Decided from catalog and config alone, never by probing a network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lj_image.catalog import schema
from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry
from lj_image.catalog.manifest_facts import text_of
from lj_image.catalog.promises import Promised
from lj_image.catalog.release import Platform
from lj_image.config import Config
from lj_image.errors import ManifestError, UsageError
from lj_image.suggest import did_you_mean

DEFAULT_INDEX = "pypi"


@dataclass(frozen=True, slots=True)
class Choice:
    """A variant, and why it was taken."""

    name: str
    reason: str


def choose_variant(
    catalog: Catalog,
    family: Family,
    entry: ReleaseEntry,
    promised: Mapping[str, Promised],
    asked: str | None,
    config: Config,
    platform: Platform,
    *,
    only_configured: bool = True,
) -> Choice:
    """Take the variant that was asked for, else the config's, else the first one that can be had for the platform.

    Raises UsageError for a variant that the family does not have, ManifestError when none can be had.
    """
    known = tuple(family.file.variants)
    wanted, reason = (asked, "asked for") if asked else (config.values.variant, "named in the config")
    if wanted and wanted != "auto":
        if wanted not in known:
            raise UsageError(f"no variant {wanted!r}", hint=did_you_mean(wanted, known, noun="variants"))
        return Choice(wanted, reason)
    refusals: list[str] = []
    for name in known:
        if (why := why_not(catalog, family, entry, promised, name, config, platform)) is None:
            return Choice(name, "; ".join(refusals) or "the first one, and its sources are configured")
        refusals.append(f"{name} is not: {why}")
    available = (name for name in known if not unavailable(catalog, family, entry, name, platform))
    if not only_configured and (first := next(available, None)) is not None:
        return Choice(first, "; ".join(refusals))
    raise ManifestError(
        f"no variant of {entry.file.release} can be built with this config",
        hint="\n".join(refusals),
    )


def why_not(
    catalog: Catalog,
    family: Family,
    entry: ReleaseEntry,
    promised: Mapping[str, Promised],
    variant: str,
    config: Config,
    platform: Platform,
) -> str | None:
    """Return why a release cannot be had in a variant with this config for this platform, or None."""
    if (why := unavailable(catalog, family, entry, variant, platform)) is not None:
        return why
    entries = (family.file.components[item] for item in promised)
    sources = [entry.sources.get(variant) for entry in entries if variant not in entry.left_out]
    missing = sorted(set(_missing(sources, config)))
    return f"the config has no {', '.join(missing)}" if missing else None


def unavailable(catalog: Catalog, family: Family, entry: ReleaseEntry, variant: str, platform: Platform) -> str | None:
    """Return why a release cannot be had in a variant for a platform, whatever the config, or None."""
    own = entry.file.variants.get(variant)
    if own is not None and own.unavailable is not None:
        return str(text_of(own.unavailable))
    base = base_of_ours(catalog, family, variant)
    if base is None or base.bootstrap.architecture == platform.architecture:
        return None
    return f"{base.image} is made for {base.bootstrap.architecture}"


def base_of_ours(catalog: Catalog, family: Family, variant: str) -> schema.BootstrapFile | None:
    """Return the base of ours that a variant stands on: it is made for one architecture, and so is the variant.

    None for a base by reference, and for one that cannot be read: resolving the variant says what is wrong with it.
    """
    name = family.file.variants[variant].base.image
    if name is None:
        return None
    try:
        return catalog.bootstrap(name, family.document.place_of(("variants", variant, "base")))
    except ManifestError:
        return None


def _missing(sources: Iterable[schema.Source | None], config: Config) -> Iterable[str]:
    for source in sources:
        if isinstance(source, schema.PipKind) and source.index not in (DEFAULT_INDEX, *config.values.indexes):
            yield f"indexes.{source.index}"
        if isinstance(source, schema.ArchiveKind) and source.location not in config.values.archives:
            yield f"archives.{source.location}"
