"""Releases that were resolved before: taken from a snapshot when nothing that decides them has changed.

Building the validators and judging every file takes a third of `lj-image render`; a snapshot takes neither.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.project import MANIFEST
from lj_image.catalog.release import FilesSource, Platform, Release, is_tree_of
from lj_image.config import Config
from lj_image.snapshot import Snapshots, encode


def resolve_once(
    catalog: Catalog,
    config: Config,
    snapshots: Snapshots,
    release: str,
    *,
    variant: str | None = None,
    platform: Platform | None = None,
    overridden: Mapping[str, str] | None = None,
    only_configured: bool = True,
    base_known: bool = True,
) -> Release:
    """Resolve a release as `catalog.resolve.resolve` does, or take what it gave for the very same files and config.

    An error is never kept, and neither is what was resolved while a file was changing.
    """
    asked = (release, variant, encode(platform), list((overridden or {}).items()), only_configured, base_known)

    def resolve_now() -> Release:
        from lj_image.catalog.resolve import resolve

        return resolve(
            catalog,
            config,
            release,
            variant=variant,
            platform=platform,
            overridden=overridden,
            only_configured=only_configured,
            base_known=base_known,
        )

    return snapshots.once(Release, lambda: made_from(catalog.root, config, asked), resolve_now, _trees_stand)


def made_from(root: Path, config: Config, asked: object) -> bytes:
    """Return all that a resolution can depend on: every manifest of the catalog, not only those that one reads.

    Which files a release reads is decided by the files; that another image has a release of this name matters, too.
    """
    return json.dumps([str(root), str(Path.cwd()), asked, encode(config.values), list(_manifests(root))]).encode()


def _manifests(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and SHA-256 of each file that a person or `lj-image base` writes for the catalog."""
    for folder in _paths_in(str(root)):
        for part in (folder, f"{folder}/releases", f"{folder}/bases", f"{folder}/notes"):
            yield from ((path, _digest(path)) for path in _paths_in(part) if path.endswith((".yaml", ".j2")))
        projects = (f"{path}/{MANIFEST}" for path in _paths_in(folder))
        yield from ((path, _digest(path)) for path in projects if os.path.exists(path))  # noqa: PTH110 - see _code


def _paths_in(folder: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(folder))
    except OSError:  # absent, or a file: most images have no such folder
        return []


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:  # whoever needs it says so; that it cannot be read is part of the state
        return str(error.errno)


def _trees_stand(release: Release) -> bool:
    """Say whether the trees of files, which are no part of the manifests, are still where they were."""
    trees = (item.source.tree for item in release.components if isinstance(item.source, FilesSource))
    return all(is_tree_of(release.folder, tree) for tree in trees)
