"""Our side: the oci builder with a cache folder of its own, beside the real one and on the same disk."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measure import Run, run, timed

if TYPE_CHECKING:
    from lj_image.plan import Plan
    from lj_image.release.assembly import Shop

PROGRAM: Final = str(Path(sys.executable).with_name("lj-image"))
RELEASE: Final = ("25.02", "--variant", "open")
_SHARED: Final = ("artifacts", "bases", "wheels")
"""Of the real cache: files by their digest, and what is known of them."""


@dataclass(frozen=True)
class Built:
    """An image in the cache's layout."""

    run: Run
    manifest: dict[str, Any]
    manifest_bytes: int

    def layers(self) -> dict[str, int]:
        """Return size in bytes by digest."""
        return {layer["digest"]: layer["size"] for layer in self.manifest["layers"]}


class Assembler:
    """Commands of one project, in one cache folder."""

    def __init__(self, folder: Path, project: Path, only: str = "") -> None:
        self.cache, self.project = folder, project
        self._selection = [*RELEASE, *(["--only", only] if only else [])]
        self._environment = {"LJ_IMAGE_CACHE": str(folder)}
        if (config := folder / "config.yaml").exists():
            self._environment["LJ_IMAGE_CONFIG"] = str(config)

    def in_project(self, project: Path) -> Assembler:
        """Return the same for another project."""
        other = Assembler(self.cache, project)
        other._selection, other._environment = self._selection, self._environment
        return other

    def build(self) -> Built:
        """Assemble by the command."""
        done = self._run("build", *self._selection, "--builder", "oci", "--json")
        answer = json.loads(done.output[done.output.index("\n{") :])
        manifest = self._blob(answer["manifest"]).read_bytes()
        return Built(done, json.loads(manifest), len(manifest))

    def render(self, target: Path) -> Path:
        """Write Dockerfile and context to a folder, and return it; the wheels are links to the store's."""
        shutil.rmtree(target, ignore_errors=True)
        self._run("render", *self._selection, "--output", str(target))
        return target

    def cold(self) -> Run:
        """Assemble with every layer unknown."""
        self.empty()
        os.sync()
        return self.build().run

    def cold_here(self) -> float:
        """Do the same in this process, everything imported and planned; return the seconds."""
        from lj_image.release.assembly import AssemblyOptions, assemble_releases

        self.empty()
        plan, shop = self._here()
        os.sync()
        return timed(lambda: assemble_releases([plan], AssemblyOptions(), shop))

    def warm(self) -> float:
        """Assemble with every layer known and the image not; return the seconds of the command."""
        self._forget_records()
        return self.build().run.seconds

    def keys(self) -> frozenset[str]:
        """Return the names of what is noted of layers."""
        return frozenset(path.name for path in self._notes())

    def empty(self, kept: frozenset[str] = frozenset()) -> None:
        """Forget all layers but some; the base stays."""
        for note in self._notes():
            if note.name in kept:
                continue
            if note.suffix == ".json":
                self._blob(json.loads(note.read_text())["blob"]["digest"]).unlink(missing_ok=True)
            note.unlink()
        self._forget_records()

    def own_bytes(self, built: Built) -> int:
        """Return the size of an image's layers above the base."""
        own = {json.loads(note.read_text())["blob"]["digest"] for note in self._notes() if note.suffix == ".json"}
        return sum(size for digest, size in built.layers().items() if digest in own)

    def _run(self, *arguments: str) -> Run:
        return run([PROGRAM, *arguments], self._environment, str(self.project))

    def _notes(self) -> list[Path]:
        folder = self.cache / "oci/layers"
        return sorted(folder.iterdir()) if folder.exists() else []

    def _blob(self, digest: str) -> Path:
        return self.cache / "oci/blobs" / digest.replace(":", "/")

    def _forget_records(self) -> None:
        shutil.rmtree(self.cache / "records", ignore_errors=True)

    def _here(self) -> tuple[Plan, Shop]:
        from dataclasses import replace

        from lj_image.builders.oci.layer_cache import LayerCache
        from lj_image.cli.app import App
        from lj_image.lock.progress import progress_for
        from lj_image.lock.store import ArtifactStore
        from lj_image.release.assembly import Shop
        from lj_image.release.record import Records

        app = App(str(self.project / "images"))
        app.say = _unheard  # type: ignore[method-assign]
        config = replace(app.config, cache_dir=self.cache)
        release, only = app.release("25.02", "open"), self._selection[len(RELEASE) + 1 :]
        plan = app.plan(release, ",".join(only).split(",") if only else ())
        shop = Shop(
            config=config,
            store=ArtifactStore(self.cache),
            records=Records(self.cache, release.image),
            cache=LayerCache(self.cache),
            say=_unheard,
            progress=progress_for(),
        )
        return plan, shop


def _unheard(line: str) -> None:
    """Take a line, and keep quiet."""


@contextmanager
def workplace() -> Iterator[Path]:
    """Yield a cache folder of our own on the cache's disk, with the real one's files in it; removed at the end."""
    from lj_image.config import load_config

    config = load_config()
    real = config.cache_dir
    folder = real / "bench"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in _SHARED:
        (real / name).mkdir(exist_ok=True)
        (folder / name).symlink_to(real / name)
    if config.file is not None:  # its `cache:` would go before ours
        lines = config.file.read_text().splitlines(keepends=True)
        (folder / "config.yaml").write_text("".join(line for line in lines if not line.startswith("cache:")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bumped_project(source: Path, folder: Path, version: str) -> Path:
    """Copy a project's manifests, set a version, lock: what a person does between two releases."""
    shutil.copytree(source / "images", folder / "images")
    run([PROGRAM, "set", *RELEASE, version], cwd=str(folder))
    run([PROGRAM, "lock", *RELEASE], cwd=str(folder))
    return folder


def wheel_sizes(rendered: Path) -> dict[str, int]:
    """Return the sizes in bytes of a rendered release's wheels, by file name."""
    return {path.name: path.stat().st_size for path in rendered.rglob("*.whl")}
