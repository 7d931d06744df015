"""The Dockerfiles that people write instead: a base, wheels mounted, one installer.

Their best form: wheels are mounted, never copied; nothing is resolved, downloaded, compiled to bytecode or checked by
hash; the installer's cache, where it has one of use, is a cache mount. ROUND stands before the steps, so that another
value runs them again and leaves everything else cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PIP: Final = (
    "python3 -m pip install --no-index --no-deps --no-compile --no-cache-dir --no-warn-script-location "
    "--break-system-packages --root-user-action=ignore --disable-pip-version-check"
)
_UV: Final = "uv pip install --offline --no-index --no-deps --no-compile-bytecode"
UV: Final = f"{_UV} --system --break-system-packages --link-mode=copy"
UV_PRIMING: Final = f"{_UV} --python /usr/bin/python3 --target /root/.cache/primed --link-mode=hardlink"
UV_MOUNTS: Final = ("type=cache,target=/root/.cache", "type=bind,source=tools,target=/opt/tools")
"""uv copies out of its cache, which has every wheel unpacked; uv itself is mounted, so that it is in no layer."""
UV_PATH: Final = "PATH=/opt/tools:$PATH "


def pip_dockerfile(base: str, layers: Sequence[str]) -> str:
    """One step that installs all wheels by pip."""
    return _dockerfile(base, [_step(PIP, layers, ("type=bind,source=wheels,target=/wheels",))])


def uv_dockerfile(base: str, layers: Sequence[str]) -> str:
    """One step that installs all wheels by uv, as most people write it."""
    return _dockerfile(base, [_step(UV_PATH + UV, layers, ("type=bind,source=wheels,target=/wheels", *UV_MOUNTS))])


def uv_layered_dockerfile(base: str, layers: Sequence[str]) -> str:
    """A step for each of our layers in their order: after a change, those before it stay cached."""
    return _dockerfile(base, [_step(UV_PATH + UV, [layer], (_mount(layer), *UV_MOUNTS)) for layer in layers])


def priming_dockerfile(base: str, layers: Sequence[str]) -> str:
    """Fills uv's cache mount, and leaves nothing in the image: what is installed are links within that mount."""
    mounts = ("type=bind,source=wheels,target=/wheels", *UV_MOUNTS)
    return _dockerfile(base, [_step(UV_PATH + UV_PRIMING, layers, mounts) + " && rm -rf /root/.cache/primed"])


def _dockerfile(base: str, steps: Sequence[str]) -> str:
    return "\n".join((f"FROM {base}", "ARG ROUND=0", *steps)) + "\n"


def _step(install: str, layers: Sequence[str], mounts: Sequence[str]) -> str:
    mounted = " ".join(f"--mount={mount}" for mount in mounts)
    wheels = " ".join(f"--find-links /wheels/{layer} -r /wheels/{layer}/requirements.txt" for layer in layers)
    return f"RUN {mounted} {install} {wheels}"


def _mount(layer: str) -> str:
    return f"type=bind,source=wheels/{layer},target=/wheels/{layer}"
