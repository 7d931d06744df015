"""What to build, for either builder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from lj_image.builders.docker.redact import redactions
from lj_image.context import BuildContext
from lj_image.errors import BuildError

Network = Literal["none", "host", "default"]

SECRET_LIMIT_BYTES: Final = 500 * 1024  # buildkit session/secrets/secretsprovider: MaxSecretSize


@dataclass(frozen=True)
class BuildRequest:
    """One build. Raises BuildError when a secret is larger than BuildKit takes."""

    context: BuildContext
    tags: tuple[str, ...] = ()
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """By the id that the Dockerfile mounts them with."""
    labels: Mapping[str, str] = field(default_factory=dict)
    build_args: Mapping[str, str] = field(default_factory=dict)
    network: Network = "default"
    """The network of RUN; it is part of what BuildKit caches by."""
    platform: str | None = None
    """Such as `linux/arm64`; the engine's own by default."""
    no_cache: bool = False
    target: str | None = None
    """The stage to build; the last one by default."""

    def __post_init__(self) -> None:
        for name, value in self.secrets.items():
            if len(value) > SECRET_LIMIT_BYTES:
                raise BuildError(
                    f"secret {name} has {len(value)} bytes; BuildKit takes {SECRET_LIMIT_BYTES}",
                    hint="put large files into the build context, or into several secrets",
                )

    @cached_property
    def redact(self) -> tuple[str, ...]:
        """Every text that would give a secret away."""
        return redactions(self.secrets.values())

    @property
    def name(self) -> str:
        """What this build has in common with the next one of the same image: its first tag's repository."""
        repository, _, tag = (self.tags[0] if self.tags else "").rpartition(":")
        return repository if repository and "/" not in tag else "".join(self.tags[:1])

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the query of POST /build (Docker Engine API, ImageBuild) as far as both builders take it."""
        yield from (("t", tag) for tag in self.tags)
        if self.labels:
            yield "labels", json.dumps(dict(self.labels), sort_keys=True)
        if self.build_args:
            yield "buildargs", json.dumps(dict(self.build_args), sort_keys=True)
        if self.network != "default":
            yield "networkmode", self.network
        if self.platform:
            yield "platform", self.platform
        if self.target:
            yield "target", self.target
        if self.no_cache:
            yield "nocache", "1"
