"""Which builder makes an image, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from lj_image.errors import EngineError, UsageError

BuilderName = Literal["auto", "docker", "docker-classic", "oci"]
BUILDERS: Final[tuple[BuilderName, ...]] = get_args(BuilderName)


@dataclass(frozen=True, slots=True)
class BuilderChoice:
    """The builder that is taken; `auto` where an engine answers, which then decides between its own two."""

    name: BuilderName
    reason: str

    @property
    def assembles(self) -> bool:
        """Whether the image is made without an engine."""
        return self.name == "oci"


def only_oci(
    *, outputs: Sequence[str], base: str | None, compression: str | None, is_lazy: bool, platform: str | None
) -> tuple[str, ...]:
    """Return the options in use that the oci builder alone knows."""
    asked = {
        "--output": bool(outputs),
        "--base": base is not None,
        "--compression": compression is not None,
        "--lazy": is_lazy,
        "--platform with several platforms": "," in (platform or ""),
    }
    return tuple(name for name, is_used in asked.items() if is_used)


def choose_builder(wanted: BuilderName, only_oci: Sequence[str]) -> BuilderChoice:
    """Take the builder that was asked for, else the one that options need, else docker where an engine answers.

    Raises UsageError where builder and options do not go together.
    """
    if wanted == "oci":
        return BuilderChoice("oci", "asked for")
    if wanted != "auto":
        if only_oci:
            raise UsageError(
                f"{only_oci[0]} is for images that are assembled without an engine",
                hint="leave it out, or add: --builder oci",
            )
        return BuilderChoice(wanted, "asked for")
    if only_oci:
        return BuilderChoice("oci", f"for {only_oci[0]}")
    return _by_engine()


def _by_engine() -> BuilderChoice:
    from lj_image.builders.docker import engine

    try:
        engine.connect().close()
    except EngineError as error:
        return BuilderChoice("oci", error.message)
    return BuilderChoice("auto", "an engine answers")
