"""What two images' configurations say of how a container is started, setting by setting; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lj_image.release.compare.expected import LABELS, Excuse

# OCI image spec, config.md, "Properties"; the last four are Docker's own.
_SETTINGS: Final = {
    "Entrypoint": "entrypoint",
    "Cmd": "cmd",
    "WorkingDir": "workdir",
    "User": "user",
    "ExposedPorts": "exposed ports",
    "Volumes": "volumes",
    "StopSignal": "stop signal",
    "Healthcheck": "health check",
    "Shell": "shell",
    "OnBuild": "onbuild",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs."""

    name: str
    """Such as `cmd`, `env PATH` or `label org.opencontainers.image.title`."""
    before: str | None
    """None where it is not set."""
    after: str | None
    excuse: Excuse | None = None


def settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return the settings that differ between two configurations, as an image or an engine has them."""
    old, new = dict(_flat(before)), dict(_flat(after))
    names = sorted(old.keys() | new.keys())
    return tuple(
        Setting(name, old.get(name), new.get(name), _excuse(name)) for name in names if old.get(name) != new.get(name)
    )


def _flat(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and value of all that is set; what is empty is as good as not set."""
    yield "platform", "/".join(filter(None, (config.get(key) for key in ("os", "architecture", "variant"))))
    run = config.get("config") or {}
    for item in run.get("Env") or ():
        name, _, value = item.partition("=")
        yield f"env {name}", value
    for name, value in (run.get("Labels") or {}).items():
        yield f"label {name}", value
    for key, name in _SETTINGS.items():
        if value := run.get(key):
            yield name, value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _excuse(name: str) -> Excuse | None:
    why = LABELS.get(name.removeprefix("label "))
    return Excuse("label", why) if why is not None and name.startswith("label ") else None
