"""A layer of the plan with all that decides about its bytes: its key in the cache, and its entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lj_image.builders.oci.compose import Ground
from lj_image.builders.oci.entries import Entry
from lj_image.builders.oci.estargz import ESTARGZ_MAKER
from lj_image.builders.oci.fresh_gzip import MAKER
from lj_image.builders.oci.layer_writer import LAYOUT_VERSION
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.catalog.release import Bytecode
from lj_image.plan import AptLayer, ArchiveLayer, ConstraintsLayer, FilesLayer, Layer, PipLayer, RunLayer, layer_digest


@dataclass(frozen=True)  # without slots, for what is computed once
class LayerRecipe:
    """All that a layer is made from; the same recipe gives the same bytes anywhere."""

    layer: Layer
    scheme: Scheme
    ground: Ground
    wheels: tuple[Wheel, ...] = ()
    """Of a pip layer, in the order of its distributions."""
    archive: Path | None = None
    workdir: str | None = None
    """The folder that the last layer makes for containers to start in."""
    bytecode: Bytecode = "none"
    is_lazy: bool = False
    """Whether it carries eStargz's table of contents."""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.layer.title

    def key(self) -> str:
        """Return the SHA-256, in hex, of all that decides about the bytes but the epoch."""
        return self._key

    @cached_property
    def _key(self) -> str:
        """Computed once: it reads every file of a tree, and the process that assembles the layer asks again."""
        ground = _below(self.ground, self._roots())
        facts = {
            "layout": LAYOUT_VERSION,
            "content": [[wheel.file, wheel.sha256] for wheel in self.wheels] or layer_digest(self.layer),
            "links": sorted(ground.folder_links.items()),
            "folders": sorted((path, folder.mode, folder.uid, folder.gid) for path, folder in ground.folders.items()),
            "winners": sorted(ground.winners.items()),
            "workdir": self.workdir,
            "lazy": ESTARGZ_MAKER if self.is_lazy else False,
            **self._installed(),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _installed(self) -> Mapping[str, object]:
        """Return what decides about the bytes of distributions, or of what is compressed here."""
        if isinstance(self.layer, (ArchiveLayer, FilesLayer)):
            return {"compressed": MAKER}
        if not isinstance(self.layer, PipLayer):
            return {}
        scheme = self.scheme
        where = [scheme.site_packages, scheme.prefix, scheme.headers, scheme.python, scheme.executable, scheme.pip]
        return {"scheme": where, "bytecode": self.bytecode}

    def _roots(self) -> tuple[str, ...]:
        """Return the folders that its entries lie in."""
        match self.layer:
            case PipLayer():
                return (self.scheme.prefix, self.scheme.headers)
            case ArchiveLayer() | FilesLayer():
                return (self.layer.source.path.strip("/"),)
            case _:
                return ("etc", *([self.workdir.strip("/")] if self.workdir else []))

    def with_epoch(self, epoch: int | None) -> LayerRecipe:
        """Return the recipe of a layer in which no time is later."""
        return replace(self, ground=replace(self.ground, epoch=epoch))

    def sources(self) -> Iterator[Iterable[Entry]]:
        """Yield the entries of each thing that the layer holds; raises BuildError for what cannot be in a layer."""
        match self.layer:
            case PipLayer():
                from lj_image.builders.oci.wheel.install import installed

                yield from (installed(wheel, self.scheme, bytecode=self.bytecode) for wheel in self.wheels)
            case ArchiveLayer():
                from lj_image.builders.oci.archives import archive_entries

                assert self.archive is not None
                yield archive_entries(self.archive, self.layer.source)
            case FilesLayer():
                from lj_image.builders.oci.trees import tree_entries

                yield tree_entries(self.layer.source)
            case ConstraintsLayer():
                from lj_image.builders.oci.trees import constraints_entries

                yield constraints_entries(self.layer, self.workdir)
            case AptLayer() | RunLayer():
                raise AssertionError(f"{self.title} was let through, and needs an engine")


def _below(ground: Ground, roots: tuple[str, ...]) -> Ground:
    """Return what of the base matters for files below some folders: another base may share the layer then."""

    def matters(path: str) -> bool:
        return any(f"{root}/".startswith(f"{path}/") or path.startswith(f"{root}/") for root in roots)

    return replace(
        ground,
        folder_links={path: target for path, target in ground.folder_links.items() if matters(path)},
        folders={path: folder for path, folder in ground.folders.items() if matters(path)},
        winners={path: owner for path, owner in ground.winners.items() if matters(path)},
    )
