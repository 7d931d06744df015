"""`note_facts`: from the manifests and the record of a release to what its note tells."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.changes import Change, changes
from lj_image.catalog.release import Component, Endpoints, LeftOut, PipSource, Release
from lj_image.catalog.text import Highlight
from lj_image.catalog.topics import TEXTS
from lj_image.config import Config
from lj_image.release.notes.evidence import evidence_of, published
from lj_image.release.notes.note import (
    Asset,
    Assets,
    BaseChange,
    BaseImage,
    Cell,
    ComponentLine,
    ContentsRow,
    Evidence,
    HighlightLine,
    NoteFacts,
    StandIn,
)
from lj_image.release.notes.told import Told, told
from lj_image.release.record import Record
from lj_image.release.references import all_references
from lj_image.snapshot import Snapshots


def note_facts(
    catalog: Catalog, config: Config, release: Release, record: Record | None, snapshots: Snapshots | None = None
) -> NoteFacts:
    """Return what the note of a release tells; verified where its record proves an image, else planned.

    With `snapshots`, manifests that were read before are not read again. Raises ManifestError for a family without
    notes or with faulty texts, VerificationError for a record that is not the release's.
    """
    return facts_of(told(catalog, config, release, snapshots), release, record)


def facts_of(written: Told, release: Release, record: Record | None) -> NoteFacts:
    """Return what a note tells, from what the manifests say and what the record proves; see `note_facts`."""
    evidence = evidence_of(release, record)
    return NoteFacts(
        image=release.image,
        release=release.name,
        variant=release.variant,
        tag=release.tag,
        date=release.date,
        product=written.notes.product,
        scenario=written.notes.scenario,
        framework=written.notes.framework,
        languages=written.notes.languages,
        evidence=evidence,
        compared_with=written.before.name if written.before else None,
        previous=release.previous,
        base=_base(written, release),
        changes=tuple(_changes(written, release)),
        highlights=tuple(_highlight(written, item) for item in release.highlights),
        fixes=release.fixes,
        architectures=tuple(item.platform.architecture for item in written.releases),
        not_made_for=written.not_made_for,
        contents=tuple(_contents(written, release, evidence)),
        components_title=written.topics.components_title,
        tag_row=written.topics.tag_row,
        driver=release.driver,
        left_out=_left_out(written),
        assets=_assets(written, release, published(record, evidence)),
        run_arguments=release.run.arguments(),
        topics=written.topics.topics,
        texts=release.folder / TEXTS,
    )


def _base(written: Told, release: Release) -> BaseImage:
    before = written.before.base if written.before else {}
    recipe = release.base.recipe
    return BaseImage(
        reference=recipe.reference() if recipe else str(release.base.reference),
        suite=recipe.suite if recipe else None,
        aligned_with=tuple(
            BaseChange(name.upper(), before.get(name), version) for name, version in written.base.items()
        ),
    )


def _changes(written: Told, release: Release) -> Iterator[ComponentLine]:
    """Yield a line for each changed component that no highlight tells of, in layer order."""
    told_by_people = {name for item in release.highlights for name in item.components}
    order = [name for name in written.order if name not in told_by_people]
    after = {item.id: item.version for item in _components(written)}
    before = written.before.promised if written.before else {}
    for change in changes(before, after, order):
        yield _line(written, change)


def _line(written: Told, change: Change) -> ComponentLine:
    component = _component(written, change.name)
    return ComponentLine(
        id=change.name,
        title=written.titles[change.name],
        kind=change.kind if written.before else "listed",
        before=change.before,
        after=change.after,
        features=component.features if component else (),
        reason=component.downgrade if component and change.kind == "down" else None,
        stand_in=_stand_in(component) if component else None,
    )


def _highlight(written: Told, highlight: Highlight) -> HighlightLine:
    components = filter(None, (_component(written, name) for name in highlight.components))
    return HighlightLine(
        highlight,
        stand_ins=tuple(filter(None, map(_stand_in, components))),
        left_out=tuple(item for item in _left_out(written) if item.id in highlight.components),
    )


def _components(written: Told) -> tuple[Component, ...]:
    """Return the components of all architectures, each once, in layer order."""
    found: dict[str, Component] = {}
    for release in written.releases:
        for component in release.components:
            found.setdefault(component.id, component)
    return tuple(found[name] for name in written.order if name in found)


def _component(written: Told, component_id: str) -> Component | None:
    return next((item for item in _components(written) if item.id == component_id), None)


def _stand_in(component: Component) -> StandIn | None:
    if component.stands_in_for is None:
        return None
    source = component.source
    name = source.distributions[0][0] if isinstance(source, PipSource) else None
    return StandIn(component.title, name, component.installed_version, component.stands_in_for)


def _left_out(written: Told) -> tuple[LeftOut, ...]:
    found = {item.id: item for release in written.releases for item in release.left_out}
    return tuple(found[name] for name in written.order if name in found)


def _contents(written: Told, release: Release, evidence: Evidence | None) -> Iterator[ContentsRow]:
    for component in _components(written):
        yield ContentsRow(
            id=component.id,
            title=component.title,
            cells=tuple(
                _cell(other.component(component.id), evidence if other.platform == release.platform else None)
                for other in written.releases
            ),
            features=component.features,
            stand_in=_stand_in(component),
        )


def _cell(component: Component | None, evidence: Evidence | None) -> Cell | None:
    """Return the version to tell; a library that says less than the promise (12.8 of 12.8.0) does not take it back."""
    if component is None:
        return None
    # Of a component that is several distributions, the first one's version is not its own: 12.4 is cudart 12.4.127.
    version = component.installed_version if component.stands_in_for else component.version
    found = evidence.found.get(component.id) if evidence else None
    if found is not None and found != version and version.startswith(found):
        return Cell(component.version, version, reported=found)
    return Cell(component.version, found or version)


def _assets(written: Told, release: Release, pushed: tuple[Asset, ...]) -> Assets:
    public = all_references(release, release.tag)[0]
    return Assets(
        public=next((item for item in pushed if item.reference == public), Asset(public)),
        vpc=_vpc_pattern(release.endpoints),
        example_regions=written.topics.example_regions,
        published=tuple(item for item in pushed if item.region is not None),
    )


def _vpc_pattern(endpoints: Endpoints) -> str:
    namespace, slash, _ = endpoints.repository.rpartition("/")
    return f"{endpoints.vpc_host.replace('{region}', '{region-id}')}/{namespace}{slash}{{image:tag}}"
