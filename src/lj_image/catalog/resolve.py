"""A release of a family, in one variant, becomes a Release: inheritance, variants, sources, templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

from lj_image.catalog import schema
from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry, inherited_from
from lj_image.catalog.endpoints import endpoints_of, template_values
from lj_image.catalog.manifest_facts import driver_of, highlights_of, notes_of, run_flags, text_of
from lj_image.catalog.names import normalised
from lj_image.catalog.project import OWN_INDEX, read_project
from lj_image.catalog.promises import Promised, promises, with_overrides
from lj_image.catalog.release import (
    AptSource,
    ArchiveSource,
    Base,
    BaseFacts,
    BaseSource,
    BootstrapRecipe,
    Component,
    ComponentSource,
    FilesSource,
    LeftOut,
    PipSource,
    Platform,
    Release,
    RunConfig,
    RunSource,
    is_tree_of,
)
from lj_image.catalog.variants import choose_variant, unavailable
from lj_image.catalog.versions import fill
from lj_image.config import Config
from lj_image.errors import ManifestError
from lj_image.suggest import did_you_mean

GIB = 1024**3


def resolve(
    catalog: Catalog,
    config: Config,
    release: str,
    *,
    variant: str | None = None,
    platform: Platform | None = None,
    overridden: Mapping[str, str] | None = None,
    only_configured: bool = True,
    base_known: bool = True,
) -> Release:
    """Resolve a release written as `25.02` or `image/25.02`, for one variant and platform.

    `overridden` holds versions to try without editing, by component. When no variant is named, the first one whose
    sources the config has is taken; with `only_configured=False`, the first one that exists. `base_known=False` is for
    whoever asks the base: its facts need not exist, and are not read. Raises ManifestError and UsageError.
    """
    family, name = catalog.find(release)
    chain = family.chain(name)
    platform = platform or Platform()
    _architectures(chain, platform)  # first: where the release is not for a platform, no variant is
    promised = promises(family, chain)
    chosen = choose_variant(
        catalog, family, chain[-1], promised, variant, config, platform, only_configured=only_configured
    )
    return resolve_variant(
        catalog,
        family,
        chain,
        chosen.name,
        chosen.reason,
        platform,
        overridden or {},
        base_known=base_known,
    )


def resolve_variant(
    catalog: Catalog,
    family: Family,
    chain: tuple[ReleaseEntry, ...],
    variant: str,
    reason: str,
    platform: Platform,
    overridden: Mapping[str, str],
    *,
    base_known: bool = True,
) -> Release:
    """Resolve one variant of a release; `chain` ends with the release itself."""
    own, entry = chain[-1].file, family.file.variants[variant]
    _refuse_unavailable(chain[-1], variant)
    architectures = _architectures(chain, platform)
    promised = with_overrides(family, promises(family, chain, variant), overridden)
    components = tuple(_components(family, variant, platform, promised))
    values = template_values(own, variant, promised)
    budget_gib = family.file.size_budget_gib
    return Release(
        image=family.name,
        title=family.file.title,
        description=family.file.description,
        name=own.release,
        variant=variant,
        variant_reason=reason,
        tag=fill(entry.tag, values, location=family.document.place_of(("variants", variant, "tag"))),
        platform=platform,
        base=_base(catalog, family, chain, variant, platform, known=base_known),
        components=components,
        protected=tuple(normalised(item) for item in entry.protected),
        expected_complaints=_complaints(chain, variant),
        endpoints=endpoints_of(family, own.release, variant, values),
        config=_run_config(family.file.config, entry),
        folder=family.folder,
        previous=own.previous,
        inherits=inherited_from(own),
        date=own.date,
        architectures=architectures,
        driver=driver_of(chain),
        highlights=highlights_of(family, chain[-1]),
        fixes=tuple(map(text_of, own.fixes)),
        left_out=tuple(_left_out(family, variant, platform, promised)),
        run=run_flags(family.file.run),
        notes=notes_of(family.file.notes),
        overridden=dict(overridden),
        size_budget_bytes=int(budget_gib * GIB) if budget_gib is not None else None,
        bytecode=family.file.bytecode,
        owners=tuple(sorted((path.strip("/"), normalised(name)) for path, name in family.file.owners.items())),
        offered=tuple(_offered(catalog, family, chain[-1], platform)),
        image_in_commands=family.name if len(catalog.families_with(own.release)) > 1 else None,
    )


def _architectures(chain: tuple[ReleaseEntry, ...], platform: Platform) -> tuple[str, ...]:
    """Return the architectures that a release has; raises ManifestError when the platform's is none of them."""
    entry = next((item for item in reversed(chain) if item.file.architectures is not None), None)
    architectures = tuple(entry.file.architectures or ()) if entry else ("amd64",)
    if platform.architecture not in architectures:
        raise ManifestError(
            f"{chain[-1].file.release} is not made for {platform.architecture}",
            hint=f"architectures of this release: {', '.join(architectures)}",
            location=entry.document.place_of(("architectures",)) if entry else None,
        )
    return architectures


def _of_platform(
    family: Family, platform: Platform, promised: Mapping[str, Promised]
) -> Iterator[tuple[str, schema.ComponentEntry, Promised]]:
    """Yield what is promised for a platform, in layer order."""
    for component_id, entry in family.file.components.items():
        item = promised.get(component_id)
        if item is not None and platform.architecture in (item.promise.architectures or entry.architectures):
            yield component_id, entry, item


def _left_out(family: Family, variant: str, platform: Platform, promised: Mapping[str, Promised]) -> Iterator[LeftOut]:
    for component_id, entry, item in _of_platform(family, platform, promised):
        if variant in entry.left_out:
            yield LeftOut(component_id, entry.title, item.promise.version, text_of(entry.left_out[variant]))


def _components(
    family: Family, variant: str, platform: Platform, promised: Mapping[str, Promised]
) -> Iterator[Component]:
    for component_id, entry, item in _of_platform(family, platform, promised):
        if variant in entry.left_out:
            continue
        source = entry.sources.get(variant)
        if source is None:
            raise ManifestError(
                f"component {component_id!r} has no source in the variant {variant!r}",
                hint=f"add it under components.{component_id}.sources in image.yaml,\n"
                f"or say there why not: `left_out: {{{variant}: …}}`,\n"
                f"or say `variants: {{{variant}: {{unavailable: …}}}}` in the release",
                location=item.location,
            )
        stands_in_for = item.promise.stands_in_for or (
            source.stands_in_for if isinstance(source, schema.PipKind) else None
        )
        yield Component(
            id=component_id,
            title=entry.title,
            version=item.promise.version,
            source=_source(family, component_id, source, item, platform),
            # A stand-in is another thing: it is not said to have the features of what it stands in for.
            features=() if stands_in_for else tuple(item.promise.features),
            stands_in_for=text_of(stands_in_for) if stands_in_for else None,
            downgrade=text_of(item.promise.downgrade) if item.promise.downgrade else None,
        )


def _source(
    family: Family, component_id: str, source: schema.Source, item: Promised, platform: Platform
) -> ComponentSource:
    version, place = item.promise.version, item.location
    values = {"version": version, "arch": platform.architecture}
    match source:
        case schema.BaseKind():
            return BaseSource(source.probe)
        case schema.PipKind(project=str(project)):
            return _own(family, component_id, source, project, item)
        case schema.PipKind():
            distributions = _distributions(component_id, source, item, platform)
            _refuse_extras_of_several(family, component_id, source)
            return PipSource(
                distributions,
                source.index,
                source.imports,
                source.overrides,
                source.probe,
                tuple(sorted(source.build_env.items())),
                tuple(sorted({normalised(name) for name in source.extras})),
            )
        case schema.ArchiveKind():
            file = fill(source.archive, values, location=place)
            return ArchiveSource(
                file, source.location, source.path, source.strip_components, source.library_path, source.probe
            )
        case schema.FilesKind():
            return FilesSource(_tree(family, component_id, source), source.path)
        case schema.AptKind():
            packages = ((name, fill(template, values, location=place)) for name, template in source.packages.items())
            return AptSource(tuple(packages))
        case schema.RunKind():
            commands = tuple(fill(command, values, location=place) for command in source.commands)
            return RunSource(commands, source.check, fill(source.expect, values, location=place), tuple(source.secrets))
    assert_never(source)


def _distributions(
    component_id: str, source: schema.PipKind, item: Promised, platform: Platform
) -> tuple[tuple[str, str], ...]:
    version = item.promise.version
    if not source.wheels:
        named = source.distribution
        if isinstance(named, dict):
            named = next((name for key, name in named.items() if key == platform.architecture), None)
        name = normalised(named or component_id)
        return ((name, fill(source.version, {"version": version}, location=item.location)),)
    if version not in source.wheels:
        raise ManifestError(
            f"component {component_id!r}: nobody wrote down which distributions make {version}",
            hint=f"add {version} under `wheels` of {component_id} in image.yaml; "
            + did_you_mean(version, source.wheels, noun="versions"),
            location=item.location,
        )
    return tuple((normalised(name), exact) for name, exact in source.wheels[version].items())


def _refuse_extras_of_several(family: Family, component_id: str, source: schema.PipKind) -> None:
    """Refuse extras beside `wheels`: nothing would say which of the distributions has them."""
    if not (source.wheels and source.extras):
        return
    sources = family.file.components[component_id].sources
    variant = next(name for name, other in sources.items() if other is source)
    raise ManifestError(
        f"component {component_id!r}: extras belong to one distribution, and `wheels` names several",
        hint="give the one that has the extras a component of its own, or write what they bring into `wheels`",
        location=family.document.place_of(("components", component_id, "sources", variant, "extras")),
    )


def _own(family: Family, component_id: str, source: schema.PipKind, project: str, item: Promised) -> PipSource:
    """Return the source that a project of the family's is; raises ManifestError for what does not go with one."""
    without_meaning = source.model_fields_set - {"kind", "project", "imports", "probe"}
    if without_meaning:
        raise ManifestError(
            f"component {component_id!r}: {', '.join(sorted(without_meaning))} means nothing beside `project`",
            hint="a project's pyproject.toml says what is installed",
            location=family.document.place_of(("components", component_id)),
        )
    found = read_project(family.folder / project)
    if item.promise.version != found.version:
        raise ManifestError(
            f"component {component_id!r}: {item.promise.version} is promised, and {project} is at {found.version}",
            hint=f"promise nothing: the version in {project}/pyproject.toml counts for every release",
            location=item.location,
        )
    distributions = ((found.name, found.version),)
    return PipSource(distributions, OWN_INDEX, source.imports, False, source.probe, project=found.folder)


def _tree(family: Family, component_id: str, source: schema.FilesKind) -> Path:
    tree = family.folder / source.tree
    if not is_tree_of(family.folder, tree):
        raise ManifestError(
            f"component {component_id!r}: {source.tree} is no folder of {family.name}",
            hint="name a folder inside the image's own folder",
            location=family.document.place_of(("components", component_id)),
        )
    return tree


def _offered(catalog: Catalog, family: Family, entry: ReleaseEntry, platform: Platform) -> Iterator[str]:
    return (name for name in family.file.variants if not unavailable(catalog, family, entry, name, platform))


def _refuse_unavailable(entry: ReleaseEntry, variant: str) -> None:
    own = entry.file.variants.get(variant)
    if own is not None and own.unavailable is not None:
        raise ManifestError(
            f"{entry.file.release} cannot be had in the variant {variant!r}: {text_of(own.unavailable)}",
            location=entry.document.place_of(("variants", variant, "unavailable")),
        )


def _base(
    catalog: Catalog,
    family: Family,
    chain: tuple[ReleaseEntry, ...],
    variant: str,
    platform: Platform,
    *,
    known: bool,
) -> Base:
    entry = family.file.variants[variant].base
    place = family.document.place_of(("variants", variant, "base"))
    if (entry.reference is None) == (entry.image is None):
        raise ManifestError(
            f"the base of {variant!r} needs a `reference` or an `image`, one of the two", location=place
        )
    values: dict[str, str] = {}
    for item in chain:
        values.update(item.file.base)
    recipe = _recipe(catalog, family, chain[-1], variant, platform) if entry.image is not None else None
    name = fill(entry.facts, values, location=place) + platform.suffix
    facts = _facts(family, name) if known else _no_facts(family, name)
    return Base(fill(entry.reference, values, location=place) if entry.reference else None, recipe, facts)


def _recipe(catalog: Catalog, family: Family, entry: ReleaseEntry, variant: str, platform: Platform) -> BootstrapRecipe:
    """Return the recipe of a variant's base of ours; raises ManifestError when it is for another architecture."""
    place = family.document.place_of(("variants", variant, "base"))
    bootstrap = catalog.bootstrap(str(family.file.variants[variant].base.image), place)
    if bootstrap.bootstrap.architecture != platform.architecture:
        others = ", ".join(_offered(catalog, family, entry, platform)) or "none"
        raise ManifestError(
            f"{bootstrap.image} is made for {bootstrap.bootstrap.architecture}, not for {platform.architecture}",
            hint=f"variants of {entry.file.release} for {platform}: {others}",
            location=place,
        )
    return recipe_of(bootstrap)


def recipe_of(file: schema.BootstrapFile) -> BootstrapRecipe:
    """Return the recipe that the file of a base of ours is."""
    entry = file.bootstrap
    return BootstrapRecipe(
        name=file.image,
        suite=entry.suite,
        architecture=entry.architecture,
        include=tuple(entry.include),
        source_date_epoch=entry.source_date_epoch,
        env=tuple(sorted(entry.env.items())),
    )


def _facts(family: Family, name: str) -> BaseFacts:
    file, path = family.base_facts(name)
    return BaseFacts(
        name=name,
        python=file.python,
        glibc=file.glibc,
        site_packages=file.site_packages,
        packages={normalised(item): version for item, version in file.packages.items()},
        complaints=_normalised_complaints(file.complaints),
        complete=file.complete,
        file=str(path),
        digest=file.digest,
        executable=file.executable,
    )


def _no_facts(family: Family, name: str) -> BaseFacts:
    return BaseFacts(name, "", "", "", {}, {}, False, str(family.facts_path(name)))


def _complaints(chain: tuple[ReleaseEntry, ...], variant: str) -> dict[str, tuple[str, ...]]:
    """Return the release's own expectations, or those it inherits while it says nothing itself."""
    for entry in reversed(chain):
        own = entry.file.variants.get(variant)
        if own is not None and "expected_complaints" in own.model_fields_set:
            return _normalised_complaints(own.expected_complaints)
    return {}


def _normalised_complaints(complaints: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {normalised(name): tuple(items) for name, items in complaints.items()}


def _run_config(entry: schema.ConfigEntry, variant: schema.VariantEntry) -> RunConfig:
    return RunConfig(
        env=tuple(sorted({**entry.env, **variant.env}.items())),
        workdir=entry.workdir,
        entrypoint=tuple(entry.entrypoint) if entry.entrypoint is not None else None,
        cmd=tuple(entry.cmd) if entry.cmd is not None else None,
    )
