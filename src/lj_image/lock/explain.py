"""uv's explanation of a failure in the words of the manifest: component, requirement, base version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from lj_image.errors import ResolutionError
from lj_image.lock.project import PROJECT_NAME, Demand, Pin

_NAME: Final = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_NO_VERSION = re.compile(rf"no version of (?P<name>{_NAME})==(?P<version>\S+?)(?=,| and|\s|$)")
_NOT_FOUND = re.compile(rf"(?P<name>{_NAME}) was not found in the package registry")
_DEPENDS = re.compile(
    rf"(?P<parent>{_NAME})(?P<parent_version>[=<>!~]\S*)? depends on (?P<name>{_NAME})(?P<specifier>[=<>!~][^\s]*)"
)
_REFUSED = re.compile(r"\b(401|403) (Unauthorized|Forbidden)|authentication credentials")
_UNREACHABLE = re.compile(r"Request failed|Failed to fetch|error sending request|Could not connect", re.IGNORECASE)
Versions = Callable[[Pin], tuple[str, ...]]
"""Gives the versions that an index offers of what a component asks for, best guess; empty when it cannot tell."""


def explain(words: str, demand: Demand, base_name: str, versions_of: Versions) -> ResolutionError:
    """Translate what uv said; its own words stand below ours."""
    text = " ".join(words.split())
    for message, hint in _findings(text, demand, base_name, versions_of):
        return ResolutionError(message, hint=f"{hint}\nuv says:\n{words}")
    return ResolutionError("no set of distributions satisfies the release", hint=f"uv says:\n{words}")


def _findings(text: str, demand: Demand, base_name: str, versions_of: Versions) -> Iterator[tuple[str, str]]:
    yield from _refused(text, demand)
    yield from _base_conflicts(text, demand, base_name)
    yield from _unknown_versions(text, demand, versions_of)
    yield from _conflicts(text, demand)
    if _UNREACHABLE.search(text):
        yield "an index cannot be reached", "check network, proxy and certificates (SSL_CERT_FILE), then run it again"


def _refused(text: str, demand: Demand) -> Iterator[tuple[str, str]]:
    if not _REFUSED.search(text):
        return
    named = [pin for pin in demand.pins if re.search(rf"\b{re.escape(pin.name)}\b", text)]
    index = next((pin.index for pin in named), "pypi")
    yield f"the index {index!r} refuses us", f"check user and password of `indexes.{index}` in the config"


def _base_conflicts(text: str, demand: Demand, base_name: str) -> Iterator[tuple[str, str]]:
    for found in _DEPENDS.finditer(text):
        name, specifier = canonicalize_name(found["name"]), found["specifier"].rstrip(",.")
        version = demand.base.get(name)
        if version is None or _satisfies(version, specifier):
            continue
        component = _component_behind(found["parent"], text, demand)
        via = "" if component and found["parent"] in _names(component, demand) else f" (through {found['parent']})"
        yield (
            f"component {component or found['parent']}{via} needs {name}{specifier}, but the base {base_name} "
            f"has {name} {version}, which is not replaced",
            f"choose a version of {component or found['parent']} that works with {name} {version}, or let a component "
            f"of the release install {name}",
        )


def _unknown_versions(text: str, demand: Demand, versions_of: Versions) -> Iterator[tuple[str, str]]:
    for found in (*_NO_VERSION.finditer(text), *_NOT_FOUND.finditer(text)):
        pin = demand.pin(canonicalize_name(found["name"]))
        if pin is None:
            continue
        offered = closest_versions(pin.version, versions_of(pin))
        hint = f"closest there: {', '.join(offered)}" if offered else f"is {pin.name} the right name of it?"
        yield f"component {pin.component}: the index {pin.index!r} has no {pin.requirement}", hint


def _conflicts(text: str, demand: Demand) -> Iterator[tuple[str, str]]:
    """Two components that need different versions of one thing: name those that uv's proof rests on."""
    roots = re.findall(rf"\b{PROJECT_NAME} depends on ({_NAME})", text)
    pins = [pin for name in dict.fromkeys(roots) if (pin := demand.pin(canonicalize_name(name)))]
    if pins:
        what = " and ".join(f"{pin.component} ({pin.requirement})" for pin in pins)
        hint = "change one of these versions, or let a component of kind pip win with `overrides: true`"
        yield f"the components cannot be installed together: {what}", hint


def closest_versions(wanted: str, offered: Iterable[str], most: int = 4) -> tuple[str, ...]:
    """Return the offered versions nearest to a wanted one: those that share most of its beginning, newest first."""
    from packaging.version import InvalidVersion, Version

    valid: list[Version] = []
    for text in set(offered):
        try:
            valid.append(Version(text))
        except InvalidVersion:
            continue
    numbers = Version(wanted).release

    def shared(version: Version) -> int:
        pairs = zip(numbers, version.release, strict=False)
        return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(numbers), len(version.release)))

    return tuple(str(version) for version in sorted(valid, key=lambda item: (shared(item), item), reverse=True)[:most])


def _satisfies(version: str, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _names(component: str, demand: Demand) -> set[str]:
    return {pin.name for pin in demand.pins if pin.component == component}


def _component_behind(parent: str, text: str, demand: Demand) -> str | None:
    """Return the component that asks for `parent`, or else the one that uv's proof starts from."""
    if (pin := demand.pin(canonicalize_name(parent))) is not None:
        return pin.component
    roots = re.findall(rf"\b{PROJECT_NAME} depends on ({_NAME})", text)
    return next((pin.component for name in roots if (pin := demand.pin(canonicalize_name(name)))), None)
