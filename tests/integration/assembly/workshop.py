"""What the tests of assembled images work with: a project, ready to build, and what lies in layouts and caches."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lj_image.lock.lockfile import read_lock
from lj_image.lock.store import ArtifactStore
from lj_image.oci.descriptor import Platform
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage
from standins.commands import Project

NOWHERE = {
    "DOCKER_HOST": "unix:///nowhere/docker.sock",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
}
"""Neither an engine nor a network."""


@dataclass(frozen=True)
class Workshop:
    """A project and a base for it."""

    project: Project
    base: Path

    @classmethod
    def copied(cls, prepared: Project, folder: Path, base: Path) -> Workshop:
        """Copy a project with its locks, and of its cache the fetched files only."""
        folder.mkdir(parents=True)
        (folder / "home").mkdir()
        shutil.copytree(prepared.folder / "images", folder / "images")
        shutil.copytree(prepared.cache / "artifacts", folder / "cache" / "artifacts")
        shutil.copyfile(prepared.config, folder / "config.yaml")
        return cls(Project(folder, env=dict(NOWHERE)), base)

    @property
    def oci(self) -> Path:
        """The layout in the cache."""
        return self.project.cache / "oci"

    def arguments(self, *more: str, variant: str = "two", builder: str = "oci") -> tuple[str, ...]:
        """Return the words of a build on the base at hand."""
        return ("build", "25.02", "--variant", variant, "--builder", builder, "--base", str(self.base), *more)

    def build(self, *more: str, variant: str = "two", **env: str) -> Any:
        """Build, and return what `--json` says."""
        return json.loads(self.project.run(*self.arguments("--json", *more, variant=variant), **env))

    def layers(self, manifest: str) -> list[str]:
        """Return the digests of an image's layers, of the base as well."""
        blob = self.oci / "blobs" / manifest.replace(":", "/")
        return [layer["digest"] for layer in json.loads(blob.read_bytes())["layers"]]

    def leftovers(self) -> list[Path]:
        """Return files that only somebody who is still writing should have."""
        found = (path for path in self.project.folder.rglob(".*") if path.is_file())
        return [path for path in found if path.name.startswith((".layer-", ".blob-")) or path.suffix == ".partial"]

    def stored(self, file: str) -> Path:
        """Return where a fetched file lies; it may be written to."""
        for lock in sorted((self.project.folder / "images/assembled/locks").iterdir()):
            item = next((item for item in read_lock(lock).artifacts() if item.file == file), None)
            if item is not None:
                path = ArtifactStore(self.project.cache).path(item.sha256)
                path.chmod(0o644)
                return path
        raise AssertionError(f"no lock names {file}")


def images_in(place: Path) -> tuple[SourceImage, ...]:
    """Return the images of both platforms in a layout."""
    return tuple(open_image(place, Platform("linux", architecture)) for architecture in ("amd64", "arm64"))


def files_of(image: SourceImage) -> dict[str, bytes]:
    """Return path -> content of every regular file, as Python's own tarfile reads the layers."""
    found: dict[str, bytes] = {}
    for layer in image.layers:
        with layer.open() as blob, tarfile.open(fileobj=io.BytesIO(blob.read(1 << 30))) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is not None:
                    found[member.name] = content.read()
    return found
