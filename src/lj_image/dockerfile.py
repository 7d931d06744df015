"""Plan -> Dockerfile and build context: one readable file that a reviewer can follow, and what it mounts.

Two forms of the same plan. With mounts (BuildKit), wheels are bind-mounted from the context; staged (the classic
builder), each install happens in a stage of its own, and only its result is copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lj_image import __version__
from lj_image.catalog.project import OWN_INDEX
from lj_image.catalog.release import BaseSource, Component
from lj_image.context import BuildContext, ContextFile
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.plan import (
    CONSTRAINTS_PATH,
    MIB,
    ArchiveLayer,
    ConstraintsLayer,
    FilesLayer,
    Layer,
    PipLayer,
    Plan,
    layer_size_bytes,
    tree_files,
)
from lj_image.templating import Templates

Form = Literal["mounts", "staged"]

UNZIP: Final = "unzip.py"
"""The program that unpacks a zip; it stands beside the archive in the context. `unzip` is in few bases."""
CONTEXT_MOUNT: Final = "/tmp/lj-image"
"""Where a step sees its files; a mount, so nothing of it stays in a layer."""
STORE_MODE: Final = 0o444
"""Of files in the artifact store, which a written context links."""
STAGED_ROOT: Final = "/tmp/lj-image-root"
"""Where a stage of the staged form installs to."""


@dataclass(frozen=True, slots=True)
class Step:
    """A layer as the templates see it."""

    layer: Layer
    slug: str
    """Its folder in the context; the title without what a path or a stage name cannot hold."""

    @property
    def folder(self) -> str:
        """The folder of its files in the context."""
        return f"layers/{self.slug}"

    @property
    def size(self) -> str:
        """Its locked files' size, for people; of a project of ours, whose size changes with each edit, whose it is."""
        if isinstance(self.layer, PipLayer) and all(item.index == OWN_INDEX for item in self.layer.distributions):
            return "of ours"
        size_bytes = layer_size_bytes(self.layer)
        return f"{size_bytes / MIB:,.1f} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:,.1f} KiB"

    @property
    def contents(self) -> tuple[str, ...]:
        """Its distributions, `name version`."""
        found = self.layer.distributions if isinstance(self.layer, PipLayer) else ()
        return tuple(f"{item.name} {item.version}" for item in found)


def render(plan: Plan, templates: Templates, *, form: Form = "mounts", base: str | None = None) -> str:
    """Render the Dockerfile of a plan.

    `base` is where the base is taken from when a mirror is in force.
    """
    return templates.get("Dockerfile.j2").render(
        plan=plan,
        release=plan.release,
        steps=steps(plan),
        base=base or plan.release.base.name,
        form=form,
        labels=labels(plan),
        components=tuple(_row(component) for component in plan.components()),
        mount=CONTEXT_MOUNT,
        root=STAGED_ROOT,
        unzip=UNZIP,
        constraints_path=CONSTRAINTS_PATH,
        tool=__version__,
        lock_name=f"locks/{plan.lock.key}.txt",
    )


def steps(plan: Plan) -> tuple[Step, ...]:
    """Return the layers with their folder names, in order."""
    return tuple(Step(layer, _slug(layer.title)) for layer in plan.layers)


def _slug(title: str) -> str:
    """`cuda: nvidia-cufft-cu12` -> `cuda.nvidia-cufft-cu12`; a component's id holds no dot, so none clash."""
    return re.sub(r"[^a-z0-9.]+", "-", title.lower().replace(": ", ".")).strip("-")


def labels(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the image's labels that the plan alone decides; times and revisions come as build arguments.

    Names: OCI image spec, annotations.md, "Pre-Defined Annotation Keys".
    """
    release = plan.release
    found = {
        "org.opencontainers.image.title": release.title,
        "org.opencontainers.image.description": release.description,
        "org.opencontainers.image.version": plan.tag,
        "org.opencontainers.image.base.name": release.base.name,
        "io.lj-image.image": release.image,
        "io.lj-image.release": release.name,
        "io.lj-image.variant": release.variant,
        "io.lj-image.lock": plan.lock.digest,
        "io.lj-image.tool": __version__,
    }
    if plan.only:
        found["io.lj-image.partial"] = ",".join(plan.only)
    if release.overridden:
        found["io.lj-image.set"] = ",".join(f"{name}={version}" for name, version in release.overridden.items())
    return tuple(sorted(found.items()))


def context(plan: Plan, dockerfile: str, file_of: Callable[[Artifact], tuple[str, str, Path]]) -> BuildContext:
    """Gather the files that the Dockerfile mounts or copies.

    `file_of` gives a locked artifact's name, sha256 and place on disk; for a source distribution, those of the
    wheel that was built from it.
    """
    files = [file for step in steps(plan) for file in _files(step, file_of)]
    return BuildContext(dockerfile, tuple(sorted(files, key=lambda file: file.path.encode())))


def _files(step: Step, file_of: Callable[[Artifact], tuple[str, str, Path]]) -> Iterable[ContextFile]:
    match step.layer:
        case PipLayer():
            pinned = [(item, *file_of(item.artifact)) for item in step.layer.distributions]
            yield ContextFile(f"{step.folder}/requirements.txt", _requirements(pinned).encode())
            yield from (ContextFile(f"{step.folder}/{name}", path, STORE_MODE) for _, name, _, path in pinned)
        case ArchiveLayer():
            name, _, path = file_of(step.layer.archive.artifact)
            yield ContextFile(f"{step.folder}/{name}", path, STORE_MODE)
            if step.layer.source.is_zip:
                yield ContextFile(f"{step.folder}/{UNZIP}", Path(__file__).with_name("unzip.py").read_bytes())
        case FilesLayer():
            tree = step.layer.source.tree
            for path in tree_files(tree):
                relative = path.relative_to(tree).as_posix()
                yield ContextFile(f"{step.folder}/{relative}", path, path.stat().st_mode & 0o777)
        case ConstraintsLayer():
            yield ContextFile(f"{step.folder}/constraints.txt", step.layer.text.encode())


def _requirements(pinned: Iterable[tuple[LockedDistribution, str, str, Path]]) -> str:
    return "".join(f"{item.name}=={item.version} --hash=sha256:{sha256}\n" for item, _, sha256, _ in pinned)


def _row(component: Component) -> str:
    """Return a component's line in the table at the head of the file, saying openly what stands in for what."""
    source = component.source
    installed = (
        "" if component.installed_version == component.version else f" (installed: {component.installed_version})"
    )
    stands_in = f", in place of {component.stands_in_for}" if component.stands_in_for else ""
    origin = "with the base" if isinstance(source, BaseSource) else source.kind
    return f"{component.title:<24} {component.version}{installed}, {origin}{stands_in}"
