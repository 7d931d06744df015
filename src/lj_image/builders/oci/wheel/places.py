"""Where each member of a wheel goes in the image.

Format: https://packaging.python.org/specifications/binary-distribution-format/#installing-a-wheel-distribution-1-0-py32-none-any-whl
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.wheel import Wheel


class Places:
    """The places of one wheel, each of which is taken once."""

    def __init__(self, wheel: Wheel, scheme: Scheme) -> None:
        self._wheel = wheel
        self._site = f"{scheme.site_packages}/"
        self._taken: dict[str, str] = {}
        """Path -> the member that goes there."""
        self._folders: Mapping[str, str] = {
            "purelib": scheme.site_packages,
            "platlib": scheme.site_packages,
            "scripts": scheme.scripts,
            "headers": f"{scheme.headers}/{wheel.distribution}",
            "data": scheme.prefix,
        }

    def take(self, member: str) -> str:
        """Return a member's path in the image; raises BuildError for a place that is unknown or taken."""
        top, _, rest = member.partition("/")
        path = self._of_data(member, rest) if rest and top.endswith(".data") else self._site + member
        if (other := self._taken.setdefault(path, member)) is not member:
            raise self._wheel.fault(member, f"it goes where {other} goes, to /{path}")
        return path

    def require_free(self, path: str) -> None:
        """Raise BuildError when a member goes where a file is made."""
        if (member := self._taken.get(path)) is not None:
            raise self._wheel.fault(member, f"it goes where an installer writes a file of its own, to /{path}")

    def is_taken(self, path: str) -> bool:
        """Say whether a member goes there."""
        return path in self._taken

    def in_record(self, path: str) -> str:
        """Return a path as RECORD has it, relative to the site-packages."""
        if path.startswith(self._site):
            return path[len(self._site) :]
        return posixpath.relpath(f"/{path}", f"/{self._site}")

    def _of_data(self, member: str, rest: str) -> str:
        key, _, below = rest.partition("/")
        if key not in self._folders or not below:
            known = ", ".join(sorted(self._folders))
            raise self._wheel.fault(member, f"no installer knows the place {key!r}; known: {known}")
        return f"{self._folders[key]}/{below}"


def script_name(member: str) -> str | None:
    """Return the name of a script, without the folders that it is in; None for every other member."""
    top, _, rest = member.partition("/")
    return posixpath.basename(rest) if top.endswith(".data") and rest.startswith("scripts/") else None
