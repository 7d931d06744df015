"""The files a person edits, as pydantic models: the one definition of what may stand in them.

`image.yaml` is an ImageFile, `releases/*.yaml` a ReleaseFile, `bases/*.yaml` a BaseFile, `notes/topics.yaml` a
TopicsFile.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from lj_image.catalog.endpoint_schema import EndpointsEntry, Name
from lj_image.documents.strict import Strict

ReleaseName = Annotated[str, StringConstraints(pattern=r"^\d\d\.\d\d(\.\d+)?$")]
"""Year and month in quotes, such as "25.02", with a number for a repaired release; an unquoted 25.10 is 25.1."""
Version = Annotated[str, StringConstraints(min_length=1, pattern=r"^\S+$")]
"""A version, as text: quote it where YAML would read a number, since an unquoted 25.10 is 25.1."""
Architecture = Literal["amd64", "arm64"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Driver = Annotated[str, StringConstraints(pattern=r"^>=\d+(\.\d+)*$")]
"""The least driver, such as ">=570"."""
Extra = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
"""The name of an extra (PEP 508); `Foo_Bar` and `foo-bar` are one (PEP 685)."""
Branch = Annotated[str, StringConstraints(pattern=r"^R\d+$")]
"""A driver's branch, such as R535."""


class Translated(Strict):
    """A text in both languages of the family's notes."""

    en: str
    zh: str


TextEntry = str | Translated


class BaseKind(Strict):
    """The component comes with the base image."""

    kind: Literal["base"]
    probe: str = "none"


class PipKind(Strict):
    """A distribution, or several, and what they require."""

    kind: Literal["pip"]
    distribution: str | dict[Architecture, str] | None = None
    """Defaults to the component's id; a mapping where it is named otherwise on some architecture."""
    version: str = "{version}"
    """A template over the promised version: `{version:public}`, `{version:major.minor.patch}`."""
    wheels: dict[str, dict[str, Version]] = Field(default_factory=dict)
    """For a component made of several distributions: promised version -> distribution -> its version."""
    extras: list[Extra] = Field(default_factory=list)
    """Extras of the distribution, such as `default` of ray; what they bring belongs to the component."""
    index: str = "pypi"
    imports: str | None = None
    """The module that proves it can be imported; empty for one that needs a GPU to import."""
    overrides: bool = False
    """These versions win over what other distributions require."""
    stands_in_for: TextEntry | None = None
    """Said in the table of components when this is not the promised thing itself."""
    probe: str = "metadata"
    build_env: dict[str, str] = Field(default_factory=dict)
    """Environment in which a source distribution is built into a wheel."""
    project: Name | None = None
    """A Python project in a folder beside `image.yaml`, in place of a distribution from an index: its wheel is made
    here, its pyproject.toml says name and version, and every release has it without promising it."""


class ArchiveKind(Strict):
    """A tar or zip unpacked at a path."""

    kind: Literal["archive"]
    archive: str
    """File name, a template over the version and `{arch}`, below the address that config gives `location`.

    A name that ends with `.zip` is a zip, any other a tar.
    """
    location: str
    """A name under `archives:` in the config."""
    path: str
    strip_components: int = 0
    library_path: str | None = None
    """A folder below `path` that is put in front of LD_LIBRARY_PATH."""
    probe: str = "none"


class FilesKind(Strict):
    """A tree below the image's folder, copied as it is."""

    kind: Literal["files"]
    tree: str
    path: str = "/"
    version: str = "{version}"


class AptKind(Strict):
    """Distribution packages at exact versions."""

    kind: Literal["apt"]
    packages: dict[str, str]
    """Package -> version, a template; a `*` at the end stands for the distribution's revision."""


class RunKind(Strict):
    """Shell commands, the last resort."""

    kind: Literal["run"]
    commands: list[str] = Field(min_length=1)
    check: str
    """A command in the image."""
    expect: str
    """What it prints: a template over the version, found anywhere in its output."""
    secrets: list[Name] = Field(default_factory=list)
    """Names under `secrets:` in the config, mounted at /run/secrets/<name> while the commands run."""


Source = Annotated[BaseKind | PipKind | ArchiveKind | FilesKind | AptKind | RunKind, Field(discriminator="kind")]


class ComponentEntry(Strict):
    """How one component gets into the image, in each variant."""

    title: str
    aliases: list[str] = Field(default_factory=list)
    """Other spellings seen in releases."""
    architectures: list[Architecture] = Field(default=["amd64", "arm64"])
    sources: dict[str, Source] = Field(default_factory=dict)
    left_out: dict[str, TextEntry] = Field(default_factory=dict)
    """Variant -> why the component is not in its images, whatever a release promises."""


class BaseEntry(Strict):
    """The image below: one by reference, or one of ours made from a distribution."""

    reference: str | None = None
    """A template over the release's `base` table: `nvcr.io/nvidia/pytorch:{ngc}-py3`."""
    image: str | None = None
    """A folder of `images/` that has a `bootstrap` table."""
    facts: str
    """File below `bases/` with the base's Python, platform and packages, without `.yaml`; a template."""


class VariantEntry(Strict):
    """One way to build the releases of this family."""

    title: str
    tag: str
    """A template: `{release}-serverless`, `{release}-vllm{vllm}-cu{cuda:majorminor}`."""
    base: BaseEntry
    protected: list[str] = Field(default_factory=list)
    """Distributions that no later install may replace."""
    env: dict[str, str] = Field(default_factory=dict)
    """Added to the family's environment."""


class ConfigEntry(Strict):
    """The image's run-time configuration."""

    env: dict[str, str] = Field(default_factory=dict)
    workdir: str | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None


class RunEntry(Strict):
    """How a container of the image is run; said in the notes, used by `lj-image shell`."""

    ipc: Literal["host", "private"] | None = None
    network: Literal["host", "bridge"] | None = None
    privileged: bool = False
    shm_size: Annotated[str, StringConstraints(pattern=r"^\d+[kmg]$")] | None = None
    """Not together with `ipc: host`, which shares the host's."""


class NotesEntry(Strict):
    """What the notes of every release say; the texts by topic lie in the folder `notes/` beside `image.yaml`."""

    product: TextEntry
    """Whose images these are."""
    scenario: TextEntry
    """Such as Training."""
    framework: str = "PyTorch"
    languages: list[Literal["en", "zh"]] = Field(default=["en"])
    """The languages that the family publishes in; `lint` asks for each text in all of them."""


class BootstrapEntry(Strict):
    """A root file system made by mmdebstrap or debootstrap."""

    suite: Name
    architecture: Architecture
    include: list[str]
    source_date_epoch: int
    env: dict[str, str] = Field(default_factory=dict)


class ImageFile(Strict):
    """`image.yaml` of a family of releases."""

    image: Name
    title: str
    description: str = ""
    namespace: str = ""
    notes: NotesEntry | None = None
    endpoints: EndpointsEntry
    config: ConfigEntry = Field(default_factory=ConfigEntry)
    run: RunEntry = Field(default_factory=RunEntry)
    variants: dict[str, VariantEntry] = Field(min_length=1)
    components: dict[Name, ComponentEntry] = Field(min_length=1)
    """In layer order: least often changed first."""
    size_budget_gib: float | None = None
    bytecode: Literal["none", "unchecked-hash"] = "none"
    """Whether distributions bring compiled modules; `unchecked-hash` (PEP 552) is the same on every machine."""
    owners: dict[str, Name] = Field(default_factory=dict)
    """Path in the image -> the distribution whose file stays, where two bring different ones."""


class BootstrapFile(Strict):
    """`image.yaml` of a base of ours."""

    image: Name
    title: str
    bootstrap: BootstrapEntry


class Promise(Strict):
    """A component's entry in a release, in its long form."""

    version: Version
    features: list[str] = Field(default_factory=list)
    architectures: list[Architecture] | None = None
    downgrade: TextEntry | None = None
    """Why the version is lower than in the release before."""
    stands_in_for: TextEntry | None = None
    """For a variant's own version of something that is promised otherwise: what it replaces."""


def _nothing_is_empty(value: object) -> object:
    return {} if value is None else value


Promises = Annotated[
    dict[str, Version | Promise],
    BeforeValidator(_nothing_is_empty),
    Field(json_schema_extra={"type": ["object", "null"]}),
]
"""Component -> what is promised; a bare `components:`, whose lines are all comments, promises nothing."""


class VariantPromises(Strict):
    """What a release promises in one variant only."""

    components: Promises = Field(default_factory=dict)
    """Component -> its version in this variant."""
    unavailable: TextEntry | None = None
    """Why the release cannot be built in this variant."""
    expected_complaints: dict[str, list[str]] = Field(default_factory=dict)
    """Distribution -> requirements of it that the release breaks on purpose, such as `numpy<2`."""


class DriverEntry(Strict):
    """Which drivers of the host the image runs with."""

    requires: Driver
    data_centre: dict[Branch, Version] = Field(default_factory=dict)
    """Older branches that data-centre GPUs may use -> the least version of each."""
    refused: list[Branch] = Field(default_factory=list)
    """Branches that are not forward compatible with the release's CUDA."""


class HighlightEntry(Strict):
    """A line of the feature list."""

    en: str
    zh: str | None = None
    components: list[str] = Field(default_factory=list)
    """Components whose change this line tells in place of the derived one."""


class ReleaseFile(Strict):
    """`releases/<release>.yaml`: versions and highlights, and of an heir only what differs."""

    release: ReleaseName
    previous: ReleaseName | None = None
    """The release that was really published before; it need not be in the catalog when `inherits` is."""
    inherits: ReleaseName | None = None
    """The release that this file is a difference to; `previous`, when it is not written."""
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    base: dict[str, Version] = Field(default_factory=dict)
    architectures: list[Architecture] | None = Field(default=None, min_length=1)
    """Inherited; amd64 where no release says otherwise."""
    driver: Driver | DriverEntry | None = None
    """Inherited; the short form changes `requires` and keeps the lists."""
    components: Promises = Field(default_factory=dict)
    """Component -> its version, or a longer promise; components of the release that is inherited need no line."""
    unlisted: list[str] = Field(default_factory=list)
    """Inherited components that this release no longer promises."""
    variants: dict[str, VariantPromises] = Field(default_factory=dict)
    highlights: list[str | HighlightEntry] = Field(default_factory=list)
    fixes: list[TextEntry] = Field(default_factory=list)


class TopicEntry(Strict):
    """A text of the notes about one subject, and the releases and variants that it is about."""

    topic: Name
    """The text in each language is the template `<topic>.<language>.md.j2` beside this file."""
    section: Literal["assets", "enhancements", "enable", "launch", "usage", "issues"]
    title: TextEntry
    from_: ReleaseName | None = Field(default=None, alias="from")
    """The first release; every one, when it is not written."""
    until: ReleaseName | None = None
    """The last release, repaired ones of its month included."""
    variants: list[str] | None = Field(default=None, min_length=1)
    """The variants; all, when it is not written."""


class ContentsEntry(Strict):
    """How the table of contents is laid out."""

    components: TextEntry | None = None
    """What the list of components is called, when not core components."""
    tag: bool = False
    """Whether it names the image's tag."""


class TopicsFile(Strict):
    """`notes/topics.yaml` of a family: which texts its notes have."""

    contents: ContentsEntry = Field(default_factory=ContentsEntry)
    example_regions: list[Name] | None = Field(default=None, min_length=1)
    """Regions that explain the address inside a region; the family's first two, when it is not written."""
    topics: list[TopicEntry] = Field(default_factory=list)
    """In the order in which they are told."""


class BaseFile(Strict):
    """What is known of a base: generated by `lj-image base`, read by the resolver."""

    base: str
    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """Of the base's manifest in its registry."""
    python: Annotated[str, StringConstraints(pattern=r"^3\.\d+(\.\d+)?$")]
    glibc: Annotated[str, StringConstraints(pattern=r"^2\.\d+$")]
    architecture: Architecture
    site_packages: str
    """Where pip installs to."""
    executable: str = "/usr/bin/python3"
    """The interpreter, as scripts that pip installs name it."""
    packages: dict[str, Version]
    complaints: dict[str, list[str]] = Field(default_factory=dict)
    """What `pip check` says of the base itself: distribution -> requirements."""
    complete: bool = True
    """False while the list is known in part only."""
