"""The peers: pip's and uv's Dockerfiles, built into a current engine by the docker command."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from bench import dockerfiles
from bench.docker_command import build_command
from bench.measure import Skipped, run

if TYPE_CHECKING:
    import docker

ROOT: Final = Path(__file__).parents[1]
TAG: Final = "lj-image-bench:peer"
_SPARE_BYTES: Final = 2 * 1024**3
Store = Literal["containerd", "classic"]
"""Where an engine keeps images: containerd's holds layers compressed as well, ready to be pushed, as our layout does;
the classic one has their files alone, and compresses whenever it pushes. Engines from 29 on begin with containerd's."""


@dataclass(frozen=True)
class Engine:
    """A current engine of our own, with the base in it."""

    command: tuple[str, ...]
    address: str
    api: docker.APIClient
    base: str
    store: Store
    words: str
    """Versions of engine and uv."""


@contextmanager
def engine(socket: Path, store: Store) -> Iterator[Engine]:
    """Start the engine, bring the base in, and stop it at the end; raises Skipped where that cannot be."""
    uv, command = _uv(), build_command()
    if command is None:
        raise Skipped("no docker command with BuildKit here")
    script = str(ROOT / "scripts/modern-engine")
    try:
        options = ["--containerd-store"] if store == "containerd" else []
        run([script, "start", "--socket", str(socket), *options])
    except (OSError, RuntimeError) as error:
        raise Skipped(f"no current engine: {error}") from None
    try:
        api = _connected(socket)
        version = api.version(api_version=False)["Version"]
        words = f"Docker Engine {version}, {run([uv, '--version']).output.strip()}"
        try:
            yield Engine(tuple(command), f"unix://{socket}", api, _base(api), store, words)
        finally:
            _forget(api, everything=True)
    finally:
        run([script, "stop", "--socket", str(socket)])


def _uv() -> str:
    from uv import find_uv_bin

    return str(find_uv_bin())


def _connected(socket: Path) -> docker.APIClient:
    import docker

    return docker.APIClient(base_url=f"unix://{socket}", version="auto", timeout=600)


def _base(api: docker.APIClient) -> str:
    from lj_image.builders.docker.base import ensure_base
    from lj_image.catalog.catalog import find_catalog
    from lj_image.catalog.resolve import resolve
    from lj_image.config import load_config

    config = load_config()
    release = resolve(find_catalog(ROOT), config, "25.02", variant="open")
    return ensure_base(api, release.base, config, release.platform, log=lambda line: None).reference


def _forget(api: docker.APIClient, *, everything: bool = False) -> None:
    """Remove what was built; wheels and uv's cache stay in the engine unless `everything` goes."""
    from docker.errors import ImageNotFound

    with suppress(ImageNotFound):
        api.remove_image(TAG, force=True)
    for image in api.images(filters={"dangling": True}):
        api.remove_image(image["Id"], force=True)
    filters: Any = None if everything else {"type": ["regular"]}
    api.prune_builds(filters=filters, all=True)


class Context:
    """Wheels of a rendered release by layer, uv, and the peers' Dockerfiles beside them."""

    def __init__(self, folder: Path, rendered: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tools").mkdir(parents=True)
        shutil.copy(_uv(), folder / "tools/uv")
        self.take(rendered)

    def take(self, rendered: Path) -> None:
        """Hold the wheels of this release; those that are there already look as they did to whoever sends them."""
        self.layers = layers_in((rendered / "Dockerfile").read_text())
        shutil.rmtree(self.folder / "wheels", ignore_errors=True)
        for layer in self.layers:
            target = self.folder / "wheels" / layer
            target.mkdir(parents=True)
            source = rendered / "layers" / layer
            for wheel in source.glob("*.whl"):
                os.link(wheel, target / wheel.name)
            (target / "requirements.txt").write_text(without_hashes((source / "requirements.txt").read_text()))


def layers_in(dockerfile: str) -> tuple[str, ...]:
    """Return the layers of wheels in a rendered Dockerfile, in its order."""
    return tuple(re.findall(r"source=layers/([^,]+),target=", dockerfile))


def without_hashes(requirements: str) -> str:
    """Return requirements by name and version alone: a peer shall not have to check what we check."""
    names = (line.split("--hash")[0].rstrip(" \\") for line in requirements.splitlines())
    return "".join(f"{name}\n" for name in names if name and not name.startswith(("#", " ")))


class Peers:
    """Builds the Dockerfiles of one context; each method returns the seconds of the whole command."""

    def __init__(self, engine: Engine, context: Context) -> None:
        self._engine, self._context = engine, context
        self._round = "0"

    def prime(self) -> float:
        """Bring the wheels into the engine, and fill uv's cache."""
        return self._anew(dockerfiles.priming_dockerfile)

    def pip(self) -> float:
        """Install everything by pip in one step, exported as an image; then forgotten."""
        return self._forgotten(dockerfiles.pip_dockerfile)

    def uv(self) -> float:
        """Install everything by uv in one step, exported as an image; then forgotten."""
        return self._forgotten(dockerfiles.uv_dockerfile)

    def uv_layered(self) -> float:
        """Install everything by uv, layer by layer, exported as an image, which stays."""
        return self._anew(dockerfiles.uv_layered_dockerfile)

    def uv_layered_again(self) -> float:
        """Build the layers that have changed, and those after them."""
        return self._build(dockerfiles.uv_layered_dockerfile)

    def uv_layered_forgotten(self) -> float:
        """Do the same; then forgotten."""
        return self._forgotten(dockerfiles.uv_layered_dockerfile)

    def forget(self, *, everything: bool = False) -> None:
        """Remove what was built; with `everything`, wheels and uv's cache too."""
        _forget(self._engine.api, everything=everything)

    def _forgotten(self, written: Callable[[str, Sequence[str]], str]) -> float:
        seconds = self._anew(written)
        self.forget()
        return seconds

    def _anew(self, written: Callable[[str, Sequence[str]], str]) -> float:
        self._round = str(time.time_ns())
        return self._build(written)

    def _build(self, written: Callable[[str, Sequence[str]], str]) -> float:
        file = self._context.folder.with_suffix(".Dockerfile")
        file.write_text(written(self._engine.base, self._context.layers))
        options = ["--network", "none", "--build-arg", f"ROUND={self._round}", "--tag", TAG, "--file", str(file)]
        environment = {"DOCKER_HOST": self._engine.address, "DOCKER_BUILDKIT": "1"}
        return run([*self._engine.command, *options, str(self._context.folder)], environment).seconds


def room_for(store: Store, wheels_bytes: int, unpacked_bytes: int) -> int:
    """Return the bytes of disk that wheels, uv's cache and an image take in an engine at once.

    With containerd's store an image is there three times: as it was built, compressed, and unpacked again.
    """
    image_bytes = unpacked_bytes if store == "classic" else 2 * unpacked_bytes + wheels_bytes
    return wheels_bytes + unpacked_bytes + image_bytes + _SPARE_BYTES
