"""Our side: a project with a release of random files, assembled once, and published by the command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.measure import Run, run
from bench.project import RELEASE, REPOSITORY, TAG, archives_of, fill, host_of, locks_of, write_project

PROGRAM: Final = str(Path(sys.executable).with_name("lj-image"))


@dataclass(frozen=True)
class Pushed:
    """One run of the command."""

    run: Run
    places: list[dict[str, Any]]


class Publisher:
    """A project in a folder, whose regions are registries on this machine."""

    def __init__(self, folder: Path, layer_mib: Sequence[int], regions: int) -> None:
        self.folder = folder
        self.regions = [f"r{number}" for number in range(regions)]
        self._environment = {
            "LJ_IMAGE_CACHE": str(folder / "cache"),
            "LJ_IMAGE_STATE": str(folder / "state"),
            "LJ_IMAGE_CONFIG": str(folder / "config.yaml"),
            "DOCKER_HOST": "unix:///nowhere/docker.sock",
        }
        shutil.rmtree(folder, ignore_errors=True)
        self._base = write_project(folder, layer_mib, self.regions)
        self.point_to([1] * regions)
        self.build()

    @property
    def layout(self) -> Path:
        """The layout in which the image lies, as `published:25.02-open`."""
        return self.folder / "cache/oci"

    def build(self) -> None:
        """Lock, and assemble the image anew."""
        shutil.rmtree(locks_of(self.folder), ignore_errors=True)
        self._command("lock", RELEASE)
        self._command("build", RELEASE, "--builder", "oci", "--base", str(self._base))

    def change(self, number: int, mib: int) -> None:
        """Give one component other files; the next build has one other layer."""
        fill(self.folder, number, mib, seed=1000 + number)

    def size_bytes(self) -> int:
        """Return the sum of all layers of the image."""
        return sum(layer["size"] for layer in self._manifest()["layers"])

    def layers(self) -> dict[str, int]:
        """Return size in bytes by digest."""
        return {layer["digest"]: layer["size"] for layer in self._manifest()["layers"]}

    def blob(self, digest: str) -> Path:
        """Return where a blob lies."""
        return self.layout / "blobs" / digest.replace(":", "/")

    def point_to(self, ports: Sequence[int]) -> None:
        """Let the regions be registries on these ports; no region is asked twice."""
        rules = (f"    {host_of(region)}: localhost:{port}\n" for region, port in zip(self.regions, ports, strict=True))
        archives = f"archives:\n  parts: {{url: 'file://{archives_of(self.folder)}'}}\n"
        (self.folder / "config.yaml").write_text(f"{archives}endpoints:\n  rewrite:\n{''.join(rules)}")

    def push(self, regions: int | None = None) -> Pushed:
        """Publish to the first regions, or to all, with an empty memory of what was sent before."""
        self.forget()
        return self.push_again(regions)

    def push_again(self, regions: int | None = None, *, force: bool = False) -> Pushed:
        """Publish as a second run does; with `force` the tag moves to another image."""
        done = self._command(*self._words(regions), *(["--force-tag"] if force else []))
        return Pushed(done, json.loads(done.output[done.output.index("{") :])["targets"])

    def push_until(self, ports: Sequence[int], regions: int) -> float:
        """Publish to the first regions until these registries have the tag; return the seconds, and end it there."""
        self.forget()
        started = time.perf_counter()
        self.push_killed(lambda: all(_has_tag(port) for port in ports), regions)
        return time.perf_counter() - started

    def push_killed(self, is_time: Callable[[], bool], regions: int | None = None) -> None:
        """Begin to publish, and kill the process when it is time for that, or when it ended before."""
        process = subprocess.Popen(
            [PROGRAM, *self._words(regions)],
            env={**os.environ, **self._environment},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not is_time() and process.poll() is None:
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def forget(self) -> None:
        """Forget what was published, so that a push begins as the first one did."""
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        for record in (self.folder / "cache/records").rglob(f"{TAG}.json"):
            known = json.loads(record.read_text())
            record.write_text(json.dumps(known | {"pushed": []}))

    def _words(self, regions: int | None) -> list[str]:
        chosen = self.regions[:regions]
        return ["push", RELEASE, "--no-verify", "--json", *(word for region in chosen for word in ("--region", region))]

    def _command(self, *arguments: str) -> Run:
        return run([PROGRAM, *arguments], self._environment, str(self.folder))

    def _manifest(self) -> dict[str, Any]:
        index = json.loads((self.layout / "index.json").read_text())
        (entry,) = (
            item
            for item in index["manifests"]
            if TAG in item["annotations"].get("org.opencontainers.image.ref.name", "")
        )
        manifest: dict[str, Any] = json.loads(self.blob(entry["digest"]).read_bytes())
        return manifest


def _has_tag(port: int) -> bool:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/{REPOSITORY}/manifests/{TAG}", method="HEAD")
    request.add_header("Accept", "application/vnd.oci.image.manifest.v1+json")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10):
            return True
    except OSError:
        return False
