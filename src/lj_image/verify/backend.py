"""testinfra's connection over our channel: `host.package`, `host.file`, `host.run` … without the docker CLI."""

from __future__ import annotations

from typing import Any, Protocol

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host

from lj_image.verify.channel import DEFAULT_TIMEOUT_S
from lj_image.verify.frames import Output


class Shell(Protocol):
    """Where commands run."""

    name: str

    def run(self, command: str | bytes, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Output: ...  # noqa: D102


class ChannelBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types for us
    """Runs testinfra's commands through a shell that is already open."""

    NAME = "lj-image"

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell.name)
        self._shell = shell

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:
        """Run a command inside the container; `timeout_s=…` for one that may take longer than others."""
        encoded = self.get_command(command, *args).encode(errors="surrogateescape")
        output = self._shell.run(encoded, **kwargs)
        return self.result(output.exit_code, encoded, output.stdout, output.stderr)

    def get_encoding(self) -> str:
        """Return the encoding of the container's output: that of every image we make."""
        return "utf-8"


def host_of(shell: Shell) -> Host:
    """Return testinfra's host for a running container."""
    backend = ChannelBackend(shell)
    host = Host(backend)
    backend.set_host(host)
    return host
