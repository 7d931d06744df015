"""The name of an image, and what engines take it for: `six` is `docker.io/library/six:latest`.

Grammar: https://github.com/distribution/reference (reference.go), which engines and registries share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Self

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.digest import Digest

DOCKER_HUB: Final = "docker.io"
_HUB_ALIAS: Final = "index.docker.io"
_OFFICIAL: Final = "library/"
_LONGEST_NAME: Final = 255
_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_HINT: Final = "write HOST[:PORT]/PATH:TAG or …@sha256:…; a path has lower-case letters, digits and . _ - / between"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an image is, by tag, by digest, or by both."""

    host: str
    """With its port, if it is said: `localhost:5000`."""
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a reference as engines do; raises UsageError. A tag that is not said stays unsaid."""
        named, at, digits = text.partition("@")
        host, rest = _split_host(named)
        repository, colon, tag = rest.partition(":")
        if host == DOCKER_HUB and "/" not in repository:
            repository = f"{_OFFICIAL}{repository}"
        if not _HOST.fullmatch(host) or not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"no reference of an image: {text!r}", hint=_HINT)
        if len(host) + 1 + len(repository) > _LONGEST_NAME:
            raise UsageError(f"a name of more than {_LONGEST_NAME} characters: {text!r}", hint=_HINT)
        if colon and not _TAG.fullmatch(tag):
            raise UsageError(
                f"no tag: {tag!r} in {text!r}", hint="a tag has letters, digits and _ . - in it, up to 128"
            )
        return cls(host, repository, tag if colon else None, _digest(digits, text) if at else None)

    @property
    def name(self) -> str:
        """Host and repository."""
        return f"{self.host}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What a registry is asked for: the digest, else the tag, else latest."""
        return str(self.digest) if self.digest else self.tag or "latest"

    @property
    def familiar(self) -> str:
        """As engines show it: without what they take for granted."""
        if self.host != DOCKER_HUB:
            return str(self)
        short = self.repository.removeprefix(_OFFICIAL)
        return f"{self.repository if '/' in short else short}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    def tagged(self) -> Reference:
        """Return it with the tag that engines add; one with a digest needs none."""
        return self if self.tag or self.digest else replace(self, tag="latest")

    def at(self, digest: Digest) -> Reference:
        """Return the same repository by digest."""
        return replace(self, tag=None, digest=digest)

    def __str__(self) -> str:
        return f"{self.name}{self._suffix}"


def _split_host(text: str) -> tuple[str, str]:
    """Tell a host from a path as engines do: it has a dot, a port or a capital letter, or is localhost."""
    first, slash, rest = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return (DOCKER_HUB if first == _HUB_ALIAS else first), rest
    return DOCKER_HUB, text


def _digest(digits: str, text: str) -> Digest:
    try:
        return Digest.parse(digits)
    except ArtifactError as error:
        raise UsageError(f"{error.message} in {text!r}", hint=error.hint) from None
