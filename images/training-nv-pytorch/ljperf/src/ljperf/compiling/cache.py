"""What was compiled is kept for the next run."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

DIRECTORY = "TORCHINDUCTOR_CACHE_DIR"


def keep_cache(environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Point Inductor's cache (graphs, kernels, Triton's too) to the user's cache folder; None if it is as it was.

    By default it is under /tmp, which a container loses. Nothing changes if the user chose a folder, or none can be
    written. Inductor reads the variable at each use, and makes entries appear by rename, so ranks may share it.
    """
    if environ.get(DIRECTORY):
        return None
    base = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    if not base:
        return None
    # Inductor's keys know torch's version but not Python's, whose bytecode some entries hold.
    folder = Path(base) / "ljperf" / f"inductor-py{sys.version_info.major}{sys.version_info.minor}"
    if not _writable(folder):
        return None
    environ[DIRECTORY] = str(folder)
    environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
    return folder


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
