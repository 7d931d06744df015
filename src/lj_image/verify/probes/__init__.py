"""How a component is asked for its version: one module per probe, and one line in the table below.

To add one: write `probes/<name>.py` with `PROBE = Probe(ask, read)` and enter it in `PROBES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lj_image.catalog.release import (
    AptSource,
    ArchiveSource,
    BaseSource,
    Component,
    FilesSource,
    PipSource,
    RunSource,
)
from lj_image.errors import ManifestError
from lj_image.suggest import did_you_mean
from lj_image.verify.probes import (
    apt,
    archive,
    cudart,
    cudnn,
    env,
    files,
    metadata,
    nccl,
    none,
    nvrtc,
    os_release,
    python,
    run,
    torch,
)
from lj_image.verify.probes.probe import Context, Finding, Probe

__all__ = ["PROBES", "Context", "Finding", "Probe", "probe_name", "probe_of"]

PROBES: Final[Mapping[str, Probe]] = {
    "apt": apt.PROBE,
    "archive": archive.PROBE,
    "cudart": cudart.PROBE,
    "cudnn": cudnn.PROBE,
    "env": env.PROBE,
    "files": files.PROBE,
    "metadata": metadata.PROBE,
    "nccl": nccl.PROBE,
    "none": none.PROBE,
    "nvrtc": nvrtc.PROBE,
    "os-release": os_release.PROBE,
    "python": python.PROBE,
    "run": run.PROBE,
    "torch": torch.PROBE,
}


def probe_name(component: Component) -> str:
    """Return the name of a component's probe, with its argument if it has one: `env:CUDA_VERSION`."""
    match component.source:
        case BaseSource() | PipSource():
            return component.source.probe
        case ArchiveSource():
            return "archive" if component.source.probe == "none" else component.source.probe
        case FilesSource():
            return "files"
        case AptSource():
            return "apt"
        case RunSource():
            return "run"


def probe_of(component: Component) -> Probe:
    """Return the probe of a component; raises ManifestError for a name that there is no probe of."""
    name = probe_name(component).partition(":")[0]
    try:
        return PROBES[name]
    except KeyError:
        raise ManifestError(
            f"the component {component.id} names the probe {name!r}, which does not exist",
            hint=did_you_mean(name, PROBES, noun="probes"),
        ) from None
