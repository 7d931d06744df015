"""uv's explanation of a failure in the words of the manifest: component, requirement, base version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from lj_image.catalog.release import BaseFacts
from lj_image.errors import ResolutionError
from lj_image.lock.project import PROJECT_NAME, Demand, Pin

_NAME: Final = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_NO_VERSION = re.compile(rf"no version of (?P<name>{_NAME})==(?P<version>\S+?)(?=,| and|\s|$)")
_NOT_FOUND = re.compile(rf"(?P<name>{_NAME}) was not found in the package registry")
_DEPENDS = re.compile(
    rf"(?P<parent>{_NAME})(?:[=<>!~]\S*)? depends? on (?P<name>{_NAME})(?P<specifier>(?:[=<>!~]=?[^\s,]+,?)*)"
)
_ROOTS = re.compile(rf"\b{PROJECT_NAME} depends on (?P<names>.*?)(?:, we can conclude|\.(?:\s|$)|$)")
_PYTHON = re.compile(rf"(?P<name>{_NAME})==\S+ requires Python (?P<specifier>[^\s,]+(?:,[^\s,]+)*)")
_NO_WHEEL = re.compile(rf"(?P<name>{_NAME})==(?P<version>\S+) has no wheels with a matching")
_EXTRAS = re.compile(r"(?<=[A-Za-z0-9])\[[\w.,-]+\]")
"""Of `ray[default]==2.42.1`; what contradicts, contradicts without them."""
_NO_EXTRA = re.compile(rf"`(?P<name>{_NAME})==[^`]+` does not have an extra named `(?P<extra>[^`]+)`")
_REFUSED = re.compile(r"\b(401|403) (Unauthorized|Forbidden)|authentication credentials")
_UNREACHABLE = re.compile(r"Request failed|Failed to fetch|error sending request|Could not connect", re.IGNORECASE)
Versions = Callable[[Pin], tuple[str, ...]]
"""Gives the versions that an index offers of what a component asks for, best guess; empty when it cannot tell."""


def explain(words: str, demand: Demand, base: BaseFacts, versions_of: Versions) -> ResolutionError:
    """Translate what uv said; its own words stand below ours."""
    text = _EXTRAS.sub("", " ".join(words.split()))
    for message, hint in _findings(text, demand, base, versions_of):
        return ResolutionError(message, hint=f"{hint}\nuv says:\n{words}")
    return ResolutionError("no set of distributions satisfies the release", hint=f"uv says:\n{words}")


def _findings(text: str, demand: Demand, base: BaseFacts, versions_of: Versions) -> Iterator[tuple[str, str]]:
    yield from _refused(text, demand)
    yield from _unknown_extras(text, demand)
    yield from _base_conflicts(text, demand, base)
    yield from _unfit(text, demand, base)
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


def _unknown_extras(text: str, demand: Demand) -> Iterator[tuple[str, str]]:
    for found in _NO_EXTRA.finditer(text):
        if (pin := demand.pin(canonicalize_name(found["name"]))) is not None:
            yield (
                f"component {pin.component}: {pin.name} {pin.version} has no extra {found['extra']!r}",
                f"correct `extras` of {pin.component} in image.yaml; its page on the index names those that it has",
            )


def _base_conflicts(text: str, demand: Demand, base: BaseFacts) -> Iterator[tuple[str, str]]:
    for found in _DEPENDS.finditer(text):
        name, specifier = canonicalize_name(found["name"]), found["specifier"].rstrip(",.")
        version = demand.base.get(name)
        if version is None or _satisfies(version, specifier):
            continue
        who = _component_behind(found["parent"], text, demand)
        yield (
            f"{who} needs {name}{specifier}, but the base {base.name} has {name} {version}, which is not replaced",
            f"choose another version of the component, or let a component of the release install {name}",
        )


def _unfit(text: str, demand: Demand, base: BaseFacts) -> Iterator[tuple[str, str]]:
    """What was not made for the base's Python or platform."""
    for found in _PYTHON.finditer(text):
        who = _component_behind(found["name"], text, demand)
        yield (
            f"{who} needs Python {found['specifier']}, but the base {base.name} has Python {base.python}",
            "choose another version of the component",
        )
    for found in _NO_WHEEL.finditer(text):
        who = _component_behind(found["name"], text, demand)
        yield (
            f"{who}: no file of {found['name']} {found['version']} fits the base {base.name}, "
            f"which has Python {base.python} and glibc {base.glibc}",
            "choose another version of the component",
        )


def _unknown_versions(text: str, demand: Demand, versions_of: Versions) -> Iterator[tuple[str, str]]:
    for found in (*_NO_VERSION.finditer(text), *_NOT_FOUND.finditer(text)):
        name = canonicalize_name(found["name"])
        pin = demand.pin(name)
        if pin is not None:
            offered = closest_versions(pin.version, versions_of(pin))
            hint = f"closest there: {', '.join(offered)}" if offered else f"is {pin.name} the right name of it?"
            yield f"component {pin.component}: the index {pin.index!r} has no {pin.requirement}", hint
        elif (parent := _parent_of(name, text)) is not None:
            who = _component_behind(parent, text, demand)
            yield f"{who} needs {name}, which is on no index", "choose another version of the component"


def _conflicts(text: str, demand: Demand) -> Iterator[tuple[str, str]]:
    """Two components that need different versions of one thing: name those that uv's proof rests on."""
    pins = _roots(text, demand)
    if len(pins) == 1:
        what = f"component {pins[0].component}: the requirements of {pins[0].requirement} contradict each other"
        yield what, "choose another version of the component"
    elif pins:
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


def _parent_of(name: str, text: str) -> str | None:
    parents = (found["parent"] for found in _DEPENDS.finditer(text) if canonicalize_name(found["name"]) == name)
    return next((parent for parent in parents if parent != PROJECT_NAME), None)


def _roots(text: str, demand: Demand) -> tuple[Pin, ...]:
    """Return what the components ask for, as far as uv's proof rests on it, in the order of its mention."""
    names = (name for found in _ROOTS.finditer(text) for name in re.findall(rf"({_NAME})==", found["names"]))
    pins = (demand.pin(canonicalize_name(name)) for name in dict.fromkeys(names))
    return tuple(pin for pin in pins if pin is not None)


def _component_behind(parent: str, text: str, demand: Demand) -> str:
    """Say which component brings `parent`, by the requirements that uv mentions."""
    if (pin := demand.pin(canonicalize_name(parent))) is not None:
        return f"component {pin.component}"
    requires: dict[str, set[str]] = {}
    for found in _DEPENDS.finditer(text):
        requires.setdefault(found["parent"], set()).add(found["name"])
    roots = _roots(text, demand)
    reaching = (pin for pin in roots if parent in _reached(pin.name, requires))
    owner = next(reaching, roots[0] if roots else None)
    return f"component {owner.component} (through {parent})" if owner else parent


def _reached(name: str, requires: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        if (found := waiting.pop()) not in seen:
            seen.add(found)
            waiting.extend(requires.get(found, ()))
    return seen
