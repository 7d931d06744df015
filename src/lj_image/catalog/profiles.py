"""Kinds of registries, by name or by host, as Capabilities: those in `profiles.yaml` and a family's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from lj_image.catalog.catalog import Family
from lj_image.catalog.endpoint import UNKNOWN
from lj_image.catalog.endpoint_schema import BuiltInProfile, ProfileEntry, ProfilesFile
from lj_image.documents.nodes import KeyPath
from lj_image.errors import ManifestError
from lj_image.oci.capabilities import Capabilities
from lj_image.suggest import did_you_mean

_FILE: Final = Path(__file__).with_name("profiles.yaml")
_UNITS: Final = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "B": 1,
}
_SIZES: Final = {
    "chunk": "chunk_bytes",
    "largest_layer": "largest_layer_bytes",
    "largest_manifest": "largest_manifest_bytes",
}
"""Key of a profile -> its field, in bytes; every other key is that of its field."""


@cache
def built_in() -> Mapping[str, BuiltInProfile]:
    """Return the profiles that come with the tool."""
    from lj_image.documents.models import read_model

    return read_model(_FILE, ProfilesFile)[0].profiles


def capabilities_of(family: Family, profile: str | None, host: str, path: KeyPath) -> Capabilities:
    """Return what a place takes, by its profile, else by its host; an unknown host has nothing particular.

    `path` is where the profile is named. Raises ManifestError for a profile that there is not.
    """
    name = profile if profile is not None else kind_of_host(host)
    return UNKNOWN if name is None else _resolved(family, name, path, ())


def kind_of_host(host: str) -> str | None:
    """Return the profile that a host's name gives away, if any."""
    name = host.partition("/")[0].lower()
    found = (kind for kind, entry in built_in().items() if any(fnmatchcase(name, like) for like in entry.hosts))
    return next(found, None)


def size_bytes(text: str) -> int:
    """Return the bytes of a size such as 4MiB."""
    number = text.rstrip("BKMGi")
    return int(number) * _UNITS[text[len(number) :]]


def _resolved(family: Family, name: str, path: KeyPath, heirs: tuple[str, ...]) -> Capabilities:
    own = family.file.endpoints.profiles
    location = family.document.place_of(path)
    if name in own and name in built_in():
        raise ManifestError(
            f"the profile {name!r} comes with the tool",
            hint=f"give yours another name, and say `like: {name}` in it",
            location=family.document.key_places["endpoints", "profiles", name],
        )
    entry = own.get(name) or built_in().get(name)
    if entry is None:
        hint = did_you_mean(name, (*own, *built_in()), noun="profiles")
        raise ManifestError(f"no profile {name!r}", hint=hint, location=location)
    if name in heirs:
        raise ManifestError(
            f"the profile {name!r} is like itself", hint="let `like` name another one", location=location
        )
    below = (
        _resolved(family, entry.like, ("endpoints", "profiles", name, "like"), (*heirs, name))
        if entry.like is not None
        else UNKNOWN
    )
    return replace(below, profile=name, **_said(entry))


def _said(entry: ProfileEntry) -> dict[str, Any]:
    """Return the fields of Capabilities that a profile sets."""
    said = entry.model_dump(exclude_none=True, exclude={"like", "hosts"})
    return {_SIZES.get(key, key): size_bytes(value) if key in _SIZES else value for key, value in said.items()}
