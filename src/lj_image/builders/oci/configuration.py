"""Plan -> the image's configuration, as the Dockerfile's instructions would leave it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from lj_image.oci.image_config import ImageConfig
from lj_image.plan import Plan

# Dockerfile reference, "Environment replacement": $name, ${name}, ${name:-word}, ${name:+word}; \$ is a dollar sign.
_VARIABLE: Final = re.compile(
    r"\\(?P<escaped>[$\\])"
    r"|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<how>[-+])(?P<word>(?:\$\{[^{}]*\}|[^{}])*))?\}"
)


def configured(base: ImageConfig, plan: Plan, labels: Mapping[str, str], created: str) -> ImageConfig:
    """Return the base's configuration with that of the plan over it; layers and history are added elsewhere."""
    run = plan.release.config
    config = base.with_env(_expanded(run.env, base.env))
    own = [(name, value) for name, value in plan.env if (name, value) not in run.env]
    config = config.with_env(_expanded(own, config.env)).with_labels(labels).with_created(created)
    if run.workdir:
        config = config.with_workdir(run.workdir)
    if run.entrypoint is not None:
        # A base's command is meant for its own entrypoint, so an engine drops it together with that.
        config = config.with_entrypoint(run.entrypoint).with_cmd(None)
    return config if run.cmd is None else config.with_cmd(run.cmd)


def _expanded(variables: Iterable[tuple[str, str]], known: Mapping[str, str]) -> dict[str, str]:
    return {name: expanded(value, known) for name, value in variables}


def expanded(value: str, known: Mapping[str, str]) -> str:
    """Replace variables by what is known of them, as ENV does.

    >>> expanded("/opt/lib${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}", {"LD_LIBRARY_PATH": "/usr/lib"})
    '/opt/lib:/usr/lib'
    """

    def replaced(found: re.Match[str]) -> str:
        if found["escaped"]:
            return found["escaped"]
        current = known.get(found["bare"] or found["name"], "")
        if found["how"] == "+":
            return expanded(found["word"], known) if current else ""
        return current or (expanded(found["word"], known) if found["how"] else "")

    return _VARIABLE.sub(replaced, value)
