"""What is to be proven: one image, and everything that was promised of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lj_image.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An image that an engine has, and the promises it is held against."""

    plan: Plan
    image_id: str
    """Or any reference that the engine knows."""
    base_image_ref: str | None = None
    """The base as the engine knows it; without it nothing is known to be the base's own, and every layer is ours."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the image must carry."""
    needles: tuple[bytes, ...] = ()
    """Secrets of the build that must be nowhere in the image; never shown, never written."""
    tests: Path | None = None
    """The folder of the image's own tests."""
    archives: Mapping[str, Path] = field(default_factory=dict)
    """Component id -> its archive in the artifact store; without it the unpacked files are not compared."""
    import_timeout_s: float = 600.0
    """For each import; vLLM took 18 s on an idle machine of 2 cores, and minutes on one that was busy eightfold."""

    @property
    def bytecode(self) -> bool:
        """Whether the image is to hold compiled files, which are litter otherwise."""
        return self.plan.release.bytecode != "none"
