"""The values of a release note: what it tells, in no language and no form yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from lj_image.catalog.changes import ChangeKind
from lj_image.catalog.release import Driver, LeftOut
from lj_image.catalog.text import Highlight, Language, Text
from lj_image.catalog.topics import Section, Topic


@dataclass(frozen=True, slots=True)
class Evidence:
    """The image that was verified."""

    image_id: str
    at: str
    """UTC, ISO 8601."""
    checks: int
    found: Mapping[str, str]
    """Component id -> the version found inside."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """What a variant has in place of a promised component."""

    title: str
    distribution: str | None
    """The name under which pip installs it."""
    version: str
    stands_in_for: Text


@dataclass(frozen=True, slots=True)
class BaseChange:
    """One entry of the table that says which base a release stands on."""

    name: str
    """As the release files write it, in capitals: NGC."""
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The image below."""

    reference: str
    suite: str | None
    """The distribution's release, of a base of ours."""
    aligned_with: tuple[BaseChange, ...]
    """Every entry of the table; `before` differs where this release moved it."""

    @property
    def moved(self) -> tuple[BaseChange, ...]:
        """The entries that are not what they were."""
        return tuple(entry for entry in self.aligned_with if entry.before != entry.after)


@dataclass(frozen=True, slots=True)
class ComponentLine:
    """A line of the feature list that follows from the versions."""

    id: str
    title: str
    kind: ChangeKind | Literal["listed"]
    """`listed`: there is no release to compare with."""
    before: str | None
    after: str | None
    features: tuple[str, ...] = ()
    reason: Text | None = None
    """Why the version went down."""
    stand_in: StandIn | None = None


@dataclass(frozen=True, slots=True)
class HighlightLine:
    """A line that a person wrote, and what this variant has of the components that it tells of."""

    highlight: Highlight
    stand_ins: tuple[StandIn, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A component on one architecture."""

    promised: str
    version: str
    """The version to tell: the promised one, or what was found inside where that says more."""
    reported: str | None = None
    """What the thing itself says of its version, when that is less."""


@dataclass(frozen=True, slots=True)
class ContentsRow:
    """A component in the table of contents."""

    id: str
    title: str
    cells: tuple[Cell | None, ...]
    """One for each architecture; None where the component is not there."""
    features: tuple[str, ...] = ()
    stand_in: StandIn | None = None

    @property
    def promised(self) -> str:
        """The version that the release promises."""
        return next((cell.promised for cell in self.cells if cell is not None), "")

    @property
    def reported(self) -> str | None:
        """What the thing itself says of its version, when that is less."""
        return next((cell.reported for cell in self.cells if cell is not None and cell.reported), None)

    @property
    def noted(self) -> bool:
        """Whether there is more to say than the version."""
        return bool(self.features or self.stand_in or self.reported)


@dataclass(frozen=True, slots=True)
class Asset:
    """A reference, and what the registry holds there."""

    reference: str
    region: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Assets:
    """Where the image is to be had."""

    public: Asset
    vpc: str
    """With `{region-id}` and `{image:tag}` in it."""
    example_regions: tuple[str, ...]
    published: tuple[Asset, ...]
    """References inside regions that hold the verified image."""


@dataclass(frozen=True, slots=True)
class NoteFacts:
    """All that the note of one release in one variant tells."""

    image: str
    release: str
    variant: str
    tag: str
    date: str | None
    product: Text
    scenario: Text
    framework: str
    languages: tuple[Language, ...]
    evidence: Evidence | None
    """None for a planned note: no image of the release was verified."""
    compared_with: str | None
    """The release that the feature list is a difference to."""
    previous: str | None
    """The release that was really published before."""
    base: BaseImage
    changes: tuple[ComponentLine, ...]
    highlights: tuple[HighlightLine, ...]
    fixes: tuple[Text, ...]
    architectures: tuple[str, ...]
    not_made_for: tuple[str, ...]
    """Architectures of the release that this variant does not have."""
    contents: tuple[ContentsRow, ...]
    components_title: Text | None
    """What the family calls the list of components, when not core components."""
    tag_row: bool
    """Whether the table of contents names the tag."""
    driver: Driver | None
    left_out: tuple[LeftOut, ...]
    assets: Assets
    run_arguments: tuple[str, ...]
    topics: tuple[Topic, ...]
    texts: Path
    """The folder of the topics' templates."""

    @property
    def stand_ins(self) -> tuple[StandIn, ...]:
        """What this variant has in place of promised components, in layer order."""
        return tuple(row.stand_in for row in self.contents if row.stand_in is not None)

    def component(self, component_id: str) -> ContentsRow | None:
        """Return a row of the table of contents."""
        return next((row for row in self.contents if row.id == component_id), None)

    def version(self, component_id: str) -> str:
        """Return the version to tell of a component, or nothing for one that is not there."""
        row = self.component(component_id)
        return next((cell.version for cell in row.cells if cell is not None), "") if row else ""

    def about(self, section: Section) -> tuple[Topic, ...]:
        """Return the topics of a section."""
        return tuple(topic for topic in self.topics if topic.section == section)

    def to_json(self) -> dict[str, Any]:
        """Return the facts for machines; where the texts lie on this machine is none of them."""
        names = (item.name for item in fields(self) if item.name != "texts")
        told = {name: _plain(getattr(self, name)) for name in names}
        return {"status": "verified" if self.evidence else "planned"} | told


def _plain(value: Any) -> Any:
    """Return a value as mappings and lists."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
