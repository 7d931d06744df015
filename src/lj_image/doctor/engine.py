"""The engine: whether it answers, what it can, and what room it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lj_image.builders.docker import engine as docker_engine
from lj_image.doctor.finding import GIB, Finding, free_space, ok, problem, warning
from lj_image.errors import EngineError

if TYPE_CHECKING:
    import docker


WITHOUT: Final = (
    "without one, images are assembled (`lj-image build --builder oci`) and pushed, but none is verified,\n"
    "no shell is opened, and components of kind apt or run cannot be built"
)


def engine() -> Iterator[Finding]:
    """Ask the engine of the environment; where it does not answer, say what can be done without one."""
    try:
        api = docker_engine.connect()
    except EngineError as error:
        yield problem("engine", error.message, "\n".join(filter(None, (error.hint, WITHOUT))))
        return
    api.timeout = 10  # a person waits
    with docker_engine.translated():
        about = api.info()
    place = docker_engine.host()
    yield ok("engine", f"Docker {about.get('ServerVersion', '?')}, API {api.api_version}, at {place}")
    yield from (_builder(api), _storage(about), _disk(api, about), _gpus(about))


def _builder(api: docker.APIClient) -> Finding:
    if docker_engine.supports_buildkit(api):
        return ok("builder", "BuildKit")
    return warning("builder", "the classic one only", "steps that mount secrets need BuildKit: take a newer engine")


def _storage(about: dict[str, Any]) -> Finding:
    status = {str(pair[0]): str(pair[1]) for pair in about.get("DriverStatus") or () if len(pair) == 2}
    containerd = status.get("driver-type", "").startswith("io.containerd.snapshotter")
    keeper = "containerd's image store" if containerd else "the engine's own image store"
    found = f"{about.get('Driver', '?')} on {status.get('Backing Filesystem', 'an unknown file system')}, {keeper}"
    if about.get("Driver") == "vfs":
        return warning("storage", found, "vfs copies the whole image for each layer: use overlay2")
    return ok("storage", found)


def _disk(api: docker.APIClient, about: dict[str, Any]) -> Finding:
    free = docker_engine.free_bytes(api)
    place = str(about.get("DockerRootDir", "?"))
    if free is None:
        return ok("engine's disk", f"{place} is not on this machine: its room is not known")
    return free_space("engine's disk", free, place, wanted_bytes=30 * GIB, needed_bytes=2 * GIB)


def _gpus(about: dict[str, Any]) -> Finding:
    if "nvidia" in (about.get("Runtimes") or {}):
        return ok("GPUs", "the engine has the nvidia runtime")
    return ok("GPUs", "no nvidia runtime: tests that need a GPU are skipped")
