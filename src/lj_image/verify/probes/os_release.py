"""The operating system: VERSION_ID in /etc/os-release."""

from __future__ import annotations

from typing import Any, cast

from lj_image.verify.probes.probe import Single


def version(value: object) -> str:
    """Return the system's version."""
    return str(cast("dict[str, Any]", value).get("VERSION_ID", ""))


def name(value: object) -> str:
    """Return the system's full name."""
    return str(cast("dict[str, Any]", value).get("PRETTY_NAME", ""))


PROBE = Single({"op": "os_release"}, version=version, where=name).probe()
