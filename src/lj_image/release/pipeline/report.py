"""What a run has come to, for machines; `summary` tells it to people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lj_image import __version__
from lj_image.errors import LjImageError
from lj_image.release.outcome import Result
from lj_image.release.pipeline.step import StepReport, error_to_json
from lj_image.release.pipeline.work import Asked, Work
from lj_image.release.record import Pushed, Record
from lj_image.release.references import all_references


@dataclass(frozen=True)
class RunReport:
    """Every step that was taken, and where the release stands now."""

    asked: Asked
    steps: tuple[StepReport, ...]
    work: Work | None = None
    """None when the files do not even say which release is meant."""
    record: Record | None = None

    @property
    def title(self) -> str:
        """The release, as exactly as it is known."""
        if self.work is None:
            return self.asked.release
        release = self.work.release
        return f"{release.image} {release.name}, variant {release.variant}"

    @property
    def wrong(self) -> StepReport | None:
        """The step that the run's exit code comes from: the last one that something is missing of."""
        return next((step for step in reversed(self.steps) if step.error), None)

    @property
    def error(self) -> LjImageError | None:
        """What the run must end with."""
        return self.wrong.error if self.wrong else None

    @property
    def exit_code(self) -> int:
        """The exit code that says so."""
        return self.error.exit_code if self.error else 0

    @property
    def results(self) -> tuple[Result, ...]:
        """What became of each target of this run."""
        return self.work.outcome.results if self.work and self.work.outcome else ()

    @property
    def published(self) -> tuple[Pushed, ...]:
        """Every reference that holds the image, of earlier runs, too."""
        if self.record is None or self.record.built is None:
            return ()
        image_id = self.record.built.image_id
        return tuple(item for item in self.record.pushed if item.image_id == image_id)

    @property
    def missing(self) -> Mapping[str, str]:
        """Region (or `public`) -> the reference there, of each place that this machine has not seen hold the image."""
        if self.work is None:
            return {}
        release = self.work.release
        there = {item.reference for item in self.published}
        names = ("public", *release.endpoints.regions)
        every = zip(names, all_references(release, release.tag), strict=True)
        return {name: reference for name, reference in every if reference not in there}

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        return {
            "tool": __version__,
            "asked": self._asked_json(),
            "dry_run": self.asked.dry_run,
            "exit_code": self.exit_code,
            "error": error_to_json(self.error) if self.error else None,
            **(self._release_json() if self.work else {}),
            **(self._image_json(self.record) if self.record else {}),
            "steps": [step.to_json() for step in self.steps],
            "targets": self.work.outcome.to_json()["targets"] if self.work and self.work.outcome else [],
            "references": [f"{item.reference}@{item.digest}" for item in self.published],
            "missing": list(self.missing.values()),
        }

    def _asked_json(self) -> dict[str, Any]:
        asked = self.asked
        return {"release": asked.release, "variant": asked.variant, "regions": asked.regions, "public": asked.public}

    def _release_json(self) -> dict[str, Any]:
        assert self.work is not None
        release = self.work.release
        return {
            "image": release.image,
            "release": release.name,
            "variant": release.variant,
            "key": release.key,
            "tag": release.tag,
            "platform": str(release.platform),
        }

    def _image_json(self, record: Record) -> dict[str, Any]:
        built, verified = record.built, record.verified
        return {
            "image_id": built.image_id if built else None,
            "builder": built.builder if built else None,
            "plan": built.plan if built else None,
            "lock": built.lock if built else None,
            "inputs": built.inputs if built else None,
            "base": built.base if built else None,
            "size_bytes": built.size_bytes if built else None,
            "verified": {"passed": verified.passed, "checks": verified.checks, "at": verified.at} if verified else None,
        }
