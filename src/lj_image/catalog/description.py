"""A Release told to people and machines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, assert_never

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.manifest_facts import text_of
from lj_image.catalog.release import (
    AptSource,
    ArchiveSource,
    BaseSource,
    Component,
    FilesSource,
    PipSource,
    Release,
    RunSource,
)


def component_rows(release: Release) -> list[tuple[str, str, str, str, str]]:
    """Return component, promised version, installed version, origin and note of each component."""
    return [
        (item.title, item.version, item.installed_version, origin(item), _note(item)) for item in release.components
    ]


def origin(component: Component) -> str:
    """Say in a few words where a component comes from."""
    match component.source:
        case BaseSource():
            return "the base"
        case PipSource(project=Path() as project):
            return f"project {project.name}/"
        case PipSource(distributions=distributions, index=index) as source:
            names = [name for name, _ in distributions]
            return f"{index}: {names[0]}{source.extras_suffix}" + (
                f" and {len(names) - 1} more" if len(names) > 1 else ""
            )
        case ArchiveSource(file=file):
            return f"archive {file}"
        case FilesSource(tree=tree):
            return f"files {tree.name}/"
        case AptSource(packages=packages):
            return "apt: " + ", ".join(name for name, _ in packages)
        case RunSource():
            return "commands"
    assert_never(component.source)


def _note(component: Component) -> str:
    features = "with " + ", ".join(component.features) if component.features else ""
    stands_in = f"stands in for {component.stands_in_for}" if component.stands_in_for else ""
    return "; ".join(part for part in (stands_in, features) if part)


def unavailable_variants(catalog: Catalog, release: str) -> dict[str, str]:
    """Return variant -> reason for those in which the release cannot be had."""
    family, name = catalog.find(release)
    own = family.release(name).file.variants
    return {variant: str(text_of(entry.unavailable)) for variant, entry in own.items() if entry.unavailable}


def to_json(release: Release) -> dict[str, Any]:
    """Return a release for machines."""
    return {
        "image": release.image,
        "release": release.name,
        "variant": release.variant,
        "variant_reason": release.variant_reason,
        "tag": release.tag,
        "platform": str(release.platform),
        "base": release.base.name,
        "previous": release.previous,
        "inherits": release.inherits,
        "date": release.date,
        "architectures": list(release.architectures),
        "driver": asdict(release.driver) if release.driver else None,
        "components": [
            {
                "id": item.id,
                "title": item.title,
                "version": item.version,
                "installed_version": item.installed_version,
                "kind": item.source.kind,
                "source": asdict(item.source),
                "features": list(item.features),
                "stands_in_for": asdict(item.stands_in_for) if item.stands_in_for else None,
            }
            for item in release.components
        ],
        "left_out": [asdict(item) for item in release.left_out],
        "highlights": [asdict(item) for item in release.highlights],
        "fixes": [asdict(item) for item in release.fixes],
    }
