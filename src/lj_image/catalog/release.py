"""The frozen values that a catalog gives: what one release in one variant is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

from lj_image.catalog.endpoint import Endpoint as Endpoint
from lj_image.catalog.endpoint import Endpoints as Endpoints
from lj_image.catalog.endpoint import Network as Network
from lj_image.catalog.text import Highlight, Language, Text
from lj_image.errors import UsageError

RECIPE_VERSION: Final = 2
"""Counted up when the same recipe is to give other bytes, so that nobody's cached tar is used again."""

Bytecode = Literal["none", "unchecked-hash"]
"""Whether distributions bring compiled modules, and what says that these fit their source (PEP 552)."""


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system and a processor, as image indexes write them."""

    os: str = "linux"
    architecture: str = "amd64"

    @classmethod
    def parse(cls, text: str) -> Platform:
        """Read `linux/arm64`; raises UsageError for anything we do not build for."""
        system, _, architecture = text.partition("/")
        if system != "linux" or architecture not in ("amd64", "arm64"):
            raise UsageError(f"no platform {text!r}", hint="known: linux/amd64, linux/arm64")
        return cls(system, architecture)

    @property
    def suffix(self) -> str:
        """What the names of files about this platform end with: nothing for amd64, else `-arm64`."""
        return "" if self.architecture == "amd64" else f"-{self.architecture}"

    def __str__(self) -> str:
        return f"{self.os}/{self.architecture}"


@dataclass(frozen=True, slots=True)
class BaseSource:
    """Comes with the base image."""

    kind = "base"
    probe: str


@dataclass(frozen=True, slots=True)
class PipSource:
    """Distributions with exact versions, from a named index."""

    kind = "pip"
    distributions: tuple[tuple[str, str], ...]
    """Name and version; the first one stands for the component."""
    index: str
    imports: str | None
    overrides: bool
    probe: str
    build_env: tuple[tuple[str, str], ...] = ()
    extras: tuple[str, ...] = ()
    """Of the one distribution; normalised (PEP 685) and sorted."""
    project: Path | None = None
    """The folder of a project of ours that is the one distribution; no lock names it."""

    @property
    def extras_suffix(self) -> str:
        """What stands behind the distribution's name in a requirement: `[cgraph,default]`, or nothing."""
        return f"[{','.join(self.extras)}]" if self.extras else ""


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """One archive, unpacked at a path."""

    kind = "archive"
    file: str
    location: str
    """Name of its address in the config."""
    path: str
    strip_components: int
    library_path: str | None
    probe: str

    @property
    def is_zip(self) -> bool:
        """Whether it is a zip, by its name; else it is a tar."""
        return self.file.lower().endswith(".zip")


@dataclass(frozen=True, slots=True)
class FilesSource:
    """A tree of the image's folder."""

    kind = "files"
    tree: Path
    path: str


def is_tree_of(folder: Path, tree: Path) -> bool:
    """Say whether a tree is a folder inside an image's own, wherever links lead to."""
    return tree.is_dir() and tree.resolve().is_relative_to(folder.resolve())


@dataclass(frozen=True, slots=True)
class AptSource:
    """Distribution packages at exact versions."""

    kind = "apt"
    packages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RunSource:
    """Shell commands, and how to see that they worked."""

    kind = "run"
    commands: tuple[str, ...]
    check: str
    expect: str
    secrets: tuple[str, ...] = ()
    """Names under `secrets:` in the config, mounted at /run/secrets/<name> while the commands run."""


ComponentSource = BaseSource | PipSource | ArchiveSource | FilesSource | AptSource | RunSource


@dataclass(frozen=True, slots=True)
class Component:
    """One named, versioned thing in the image."""

    id: str
    title: str
    version: str
    """As promised."""
    source: ComponentSource
    features: tuple[str, ...] = ()
    stands_in_for: Text | None = None
    """What the promise means elsewhere, when this is only its public counterpart."""
    downgrade: Text | None = None
    """Why the version is lower than in the release before; said by whoever promised it."""

    @property
    def installed_version(self) -> str:
        """The version that is really installed, which a stand-in has of its own."""
        if isinstance(self.source, PipSource) and len(self.source.distributions) == 1:
            return self.source.distributions[0][1]
        return self.version


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """What is known of a base image: the resolver's ground."""

    name: str
    python: str
    glibc: str
    site_packages: str
    packages: Mapping[str, str]
    """Distribution, by its normalised name -> version."""
    complaints: Mapping[str, tuple[str, ...]]
    complete: bool
    file: str
    """Where this is written, for messages."""
    digest: str | None = None
    """The base's manifest, `sha256:…`, when the facts were read from it."""
    executable: str = "/usr/bin/python3"
    """The interpreter, as scripts that pip installs name it."""


@dataclass(frozen=True, slots=True)
class BootstrapRecipe:
    """How a base of ours is made from a distribution."""

    name: str
    suite: str
    architecture: str
    include: tuple[str, ...]
    source_date_epoch: int
    """No file is younger than this."""
    env: tuple[tuple[str, str], ...] = ()
    """Set in the image, next to PATH."""

    def digest(self) -> str:
        """Return the SHA-256, in hex, of all that goes into the root file system."""
        inputs = {name: value for name, value in asdict(self).items() if name not in ("name", "env")}
        text = json.dumps({**inputs, "version": RECIPE_VERSION}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def reference(self) -> str:
        """Return the name that the image has in an engine."""
        return f"lj-image/{self.name}:{self.suite}-{self.digest()[:12]}"


@dataclass(frozen=True, slots=True)
class Base:
    """The image below: a reference, or a recipe of ours."""

    reference: str | None
    recipe: BootstrapRecipe | None
    facts: BaseFacts

    @property
    def name(self) -> str:
        """What a Dockerfile says in FROM: the reference, with its digest where that is known."""
        if self.recipe is not None:
            return self.recipe.reference()
        return f"{self.reference}@{self.facts.digest}" if self.facts.digest else str(self.reference)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The image's run-time configuration."""

    env: tuple[tuple[str, str], ...] = ()
    workdir: str | None = None
    entrypoint: tuple[str, ...] | None = None
    cmd: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunFlags:
    """How a container of the image is run."""

    ipc: str | None = None
    network: str | None = None
    privileged: bool = False
    shm_size: str | None = None

    def arguments(self) -> tuple[str, ...]:
        """Return them as `docker run` takes them."""
        return tuple(
            flag
            for flag, wanted in (
                (f"--ipc={self.ipc}", self.ipc),
                (f"--net={self.network}", self.network),
                (f"--shm-size={self.shm_size}", self.shm_size),
                ("--privileged", self.privileged),
            )
            if wanted
        )


@dataclass(frozen=True, slots=True)
class Driver:
    """Which drivers of the host a release runs with."""

    requires: str
    """Such as >=570."""
    data_centre: tuple[tuple[str, str], ...] = ()
    """Branch and least version, for data-centre GPUs."""
    refused: tuple[str, ...] = ()
    """Branches that are not forward compatible with the release's CUDA."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A promised component that this variant does not have."""

    id: str
    title: str
    version: str
    reason: Text


@dataclass(frozen=True, slots=True)
class NotesFacts:
    """What the notes of every release of a family say."""

    product: Text
    scenario: Text
    framework: str
    languages: tuple[Language, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """One release in one variant for one platform, with everything resolved that needs no network."""

    image: str
    title: str
    description: str
    name: str
    """Such as 25.02."""
    variant: str
    variant_reason: str
    """Why this variant was taken; shown in the first line of a build."""
    tag: str
    platform: Platform
    base: Base
    components: tuple[Component, ...]
    """In layer order."""
    protected: tuple[str, ...]
    """Normalised names of distributions that nothing may replace."""
    expected_complaints: Mapping[str, tuple[str, ...]]
    endpoints: Endpoints
    config: RunConfig
    folder: Path
    """`images/<image>`."""
    previous: str | None = None
    """The release that was really published before; the catalog need not have it."""
    inherits: str | None = None
    """The release of the catalog that this one is compared with: `previous` where the catalog has that."""
    date: str | None = None
    """YYYY-MM-DD."""
    architectures: tuple[str, ...] = ("amd64",)
    driver: Driver | None = None
    highlights: tuple[Highlight, ...] = ()
    fixes: tuple[Text, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    """Promised components that this variant does not have, in layer order."""
    run: RunFlags = field(default_factory=RunFlags)
    notes: NotesFacts | None = None
    overridden: Mapping[str, str] = field(default_factory=dict)
    """Versions tried with --set, not written in the manifest."""
    size_budget_bytes: int | None = None
    bytecode: Bytecode = "none"
    """Whether distributions bring compiled modules, which are valid by their source's hash and never checked."""
    owners: tuple[tuple[str, str], ...] = ()
    """Path in the image, without a leading slash -> whose file stays where two bring different ones."""
    offered: tuple[str, ...] = ()
    """The family's variants in which this release can be had for the platform, whatever a config lacks for them."""
    image_in_commands: str | None = None
    """The image's name where commands have to say it, since another image has a release of that name."""

    @property
    def asked_as(self) -> str:
        """What commands take for it: 25.02, or image/25.02 where 25.02 alone means several."""
        return f"{self.image_in_commands}/{self.name}" if self.image_in_commands else self.name

    @property
    def key(self) -> str:
        """The name of its lock and record: 25.02-open, with the architecture unless that is amd64."""
        return f"{self.name}-{self.variant}{self.platform.suffix}"

    def component(self, component_id: str) -> Component | None:
        """Return a component by its canonical id."""
        return next((component for component in self.components if component.id == component_id), None)

    def build_env(self, component_id: str) -> dict[str, str]:
        """Return the environment in which sources of a component become wheels; of `shared` and others, none."""
        component = self.component(component_id)
        return dict(component.source.build_env) if component and isinstance(component.source, PipSource) else {}
