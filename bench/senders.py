"""The peers of publishing: docker's push from an engine that keeps compressed layers; skopeo and crane side by side."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.measure import run
from bench.peers import Engine
from bench.project import REPOSITORY, TAG

_CRANE: Final = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "lj-image/tools/crane"


def side_by_side(layout: Path, name: str, ports: Sequence[int]) -> dict[str, Callable[[], float]]:
    """Return the tools that are here, each as what publishes an image of a layout to all registries at once."""
    found: dict[str, Callable[[], float]] = {}
    if skopeo := shutil.which("skopeo"):
        command = (skopeo, "copy", "--quiet", "--dest-tls-verify=false", f"oci:{layout}:{name}")
        found["skopeo"] = lambda: _together([(*command, f"docker://{_place(port)}") for port in ports])
    crane = shutil.which("crane") or (str(_CRANE) if _CRANE.exists() else None)
    if crane:
        found["crane"] = lambda: _together([(crane, "push", "--insecure", str(layout), _place(port)) for port in ports])
    for name in {"skopeo", "crane"} - found.keys():
        print(f"skipped: {name} (not installed)")
    return found


@dataclass(frozen=True)
class Docker:
    """An engine that has the image."""

    engine: Engine
    image: str

    @classmethod
    @contextmanager
    def loaded(cls, engine: Engine, layout: Path, name: str) -> Iterator[Docker]:
        """Load the image into an engine."""
        archive = layout.parent / "peer.tar"
        run(
            [str(shutil.which("skopeo")), "copy", "--quiet", f"oci:{layout}:{name}", f"docker-archive:{archive}:{name}"]
        )
        try:
            with archive.open("rb") as file:
                engine.api.load_image(file, quiet=True)  # type: ignore[no-untyped-call]
        finally:
            archive.unlink(missing_ok=True)
        yield cls(engine, name)

    def push(self, ports: Sequence[int]) -> float:
        """Push to one registry after the other, as scripts do; return the seconds."""
        program = self.engine.command[0]
        for port in ports:
            self.engine.api.tag(self.image, _place(port).rpartition(":")[0], TAG)
        started = time.perf_counter()
        for port in ports:
            run([program, "push", "--quiet", _place(port)], {"DOCKER_HOST": self.engine.address})
        return time.perf_counter() - started


def _place(port: int) -> str:
    return f"localhost:{port}/{REPOSITORY}:{TAG}"


def _together(commands: Sequence[Sequence[str]]) -> float:
    started = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for command in commands]
    for command, process in zip(commands, running, strict=True):
        _, words = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {words[-400:].decode(errors='replace')}")
    return time.perf_counter() - started
