"""A wheel in the artifact store, and what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from lj_image.errors import BuildError

HINT: Final = (
    "the file is what the lock names, so it was published like that: ask its publisher, or take another version"
)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A file of the artifact store, where names are digests."""

    path: Path
    file: str
    """Its own name, such as ray-2.42.1-cp311-cp311-manylinux2014_x86_64.whl."""
    sha256: str

    @property
    def distribution(self) -> str:
        """The distribution's name, normalised (PEP 503); raises BuildError for an impossible file name."""
        try:
            return str(parse_wheel_filename(self.file)[0])
        except InvalidWheelFilename as error:
            raise self.fault("", str(error)) from None

    def fault(self, member: str, what: str, hint: str = HINT) -> BuildError:
        """Return the error for a member, or for the wheel itself where none is to blame."""
        return BuildError(f"{self.file}: {member}: {what}" if member else f"{self.file}: {what}", hint=hint)
