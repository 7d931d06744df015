"""What a run is asked for, what it works with, and what its steps share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import Location
from lj_image.lock.lock import Lock
from lj_image.plan import Plan, plan
from lj_image.release.build import Workshop
from lj_image.release.builder_choice import BuilderChoice, BuilderName
from lj_image.release.outcome import Outcome
from lj_image.release.pipeline.state import States
from lj_image.release.publish import Sender
from lj_image.release.record import Built, Record, Records
from lj_image.release.references import Target
from lj_image.templating import Templates

if TYPE_CHECKING:
    from lj_image.verify.report import VerifyReport


class Finding(Protocol):
    """What lint says of one place."""

    @property
    def message(self) -> str:
        """What is wrong."""

    @property
    def hint(self) -> str | None:
        """What to write instead."""

    @property
    def location(self) -> Location | None:
        """Where it stands."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person or a CI job asks for."""

    release: str
    variant: str | None = None
    regions: tuple[str, ...] = ()
    public: bool = False
    dry_run: bool = False
    builder: BuilderName = "auto"
    output: Path | None = None
    """Folder of the files that a run leaves; by default build/release/<image>/<key> beside `images/`."""
    summary: Path | None = None
    """File that the summary is added to."""


@dataclass(frozen=True)
class Means:
    """What a run works with; what costs something is a function, called by the first step that needs it."""

    catalog: Catalog
    config: Callable[[], Config]
    lint: Callable[[str], Sequence[Finding]]
    resolve: Callable[[str, str | None], Release]
    lock: Callable[[Release], Lock]
    templates: Callable[[], Templates]
    choose: Callable[[BuilderName], BuilderChoice]
    """Says which builder is taken, and why; for `auto` an engine is asked whether it answers."""
    workshop: Callable[[Release], Workshop]
    """Connects to the engine."""
    assemble: Callable[[Plan], tuple[Built, bool]]
    """Makes an image without an engine; returns what is recorded of it, and whether it was up to date."""
    sender: Callable[[Release, Built | None], Sender]
    """Returns what carries the image of a record; where there is none, it only asks registries."""
    observe: Callable[[], Any]
    """A context manager that gives an observer of a build."""
    say: Callable[[str], None]


class Work:
    """One release in one variant, and what the steps learn of it."""

    def __init__(self, asked: Asked, means: Means, release: Release, targets: tuple[Target, ...]) -> None:
        self.asked, self.means, self.release, self.targets = asked, means, release, targets
        self.records = Records(means.config().cache_dir, release.image)
        self.states = States(self.records.folder, release.key, means.say)
        self.folder = asked.output or means.catalog.root.absolute().parent.joinpath(
            "build", "release", release.image, release.key
        )
        self.outcome: Outcome | None = None
        """What became of the targets; None before they were asked."""
        self.report: VerifyReport | None = None
        """The proof, when this run has made it."""

    @cached_property
    def plan(self) -> Plan:
        """The plan; raises LockError when the lock is missing or stale."""
        return plan(self.release, self.means.lock(self.release))

    @cached_property
    def choice(self) -> BuilderChoice:
        """The builder of this run."""
        return self.means.choose(self.asked.builder)

    @cached_property
    def workshop(self) -> Workshop:
        """Engine, store and records; raises EngineError when no engine answers."""
        return self.means.workshop(self.release)

    @cached_property
    def sender(self) -> Sender:
        """What asks registries, and carries images to them."""
        built = self.built()
        if built is not None and built.is_assembled != self.choice.assembles:
            built = None  # a dry run after a run with the other builder: this image is not what would be sent
        return self.means.sender(self.release, built)

    def record(self) -> Record | None:
        """Return the record as it stands now."""
        return self.records.read(self.release.key)

    def built(self) -> Built | None:
        """Return the image in the record."""
        record = self.record()
        return record.built if record else None
