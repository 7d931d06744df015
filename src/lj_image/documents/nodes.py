"""YAML text to plain values that remember where they were written.

A release engineer's mistakes are lexical: an unquoted 25.10, a tab, a key written twice. PyYAML's own
constructor loses both the text and the place, so values are built from its nodes here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lj_image.errors import Location, ManifestError

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the top of a document down to a value."""

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR = yaml.SafeLoader("")  # only for its implicit types
_NUMBER = re.compile(r"[-+]?\d[\d_]*(\.\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file: its values, and for each value its text and place."""

    file: str
    """The path as it is shown to the user."""
    data: dict[str, Any]
    places: dict[KeyPath, Location]
    key_places: dict[KeyPath, Location]
    texts: dict[KeyPath, str]
    """The scalar as it was written, without quotes."""

    def place_of(self, path: KeyPath) -> Location:
        """Return where the value stands, or the nearest value around it."""
        for end in range(len(path), -1, -1):
            if (place := self.places.get(path[:end])) is not None:
                return place
        return Location(self.file)


def read_document(path: Path, shown_as: str | None = None) -> Document:
    """Read a YAML mapping with unique string keys.

    Raises ManifestError with line and column for anything else.
    """
    file = shown_as or str(path)
    return parse_document(_text_of(path, file), file)


def parse_document(text: str, file: str) -> Document:
    """Parse the text of a YAML mapping; see `read_document`."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except yaml.reader.ReaderError as error:
        raise ManifestError(
            f"a character that YAML does not allow: {error.character!r}",
            hint="delete it, or write it as an escape in a double-quoted string",
            location=_location_of_offset(text, error.position, file),
        ) from None
    if root is None:
        raise ManifestError(
            "the file is empty",
            hint='start it with a mapping, such as `release: "25.02"`',
            location=Location(file, 1, 1),
        )
    builder = _Builder(file)
    data = builder.build(root, ())
    if not isinstance(data, dict):
        raise ManifestError(
            f"found a {_kind(root)} at the top, expected a mapping",
            hint="write `key: value` lines",
            location=_location(root, file),
        )
    return Document(file, data, builder.places, builder.key_places, builder.texts)


class _Builder:
    """Collects values, places and texts in one walk over the nodes."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[KeyPath, Location] = {}
        self.key_places: dict[KeyPath, Location] = {}
        self.texts: dict[KeyPath, str] = {}
        self.seen: set[int] = set()

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self.places[path] = _location(node, self.file)
        self._refuse_alias(node)
        if isinstance(node, yaml.MappingNode):
            return {key: self.build(value, (*path, key)) for key, value in self._items(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, position)) for position, item in enumerate(node.value)]
        self.texts[path] = node.value
        return _scalar(node)

    def _refuse_alias(self, node: yaml.Node) -> None:
        """An alias composes to a node seen before; nested ones grow without bound and may hold themselves."""
        if id(node) in self.seen:
            raise ManifestError(
                "a YAML alias (*name) stands for this value a second time",
                hint="write the value out; releases inherit by `previous:`",
                location=_location(node, self.file),
            )
        self.seen.add(id(node))

    def _items(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[str, yaml.Node]]:
        for key_node, value_node in node.value:
            key = _key(key_node, self.file)
            location = _location(key_node, self.file)
            if (first := self.key_places.get((*path, key))) is not None:
                raise ManifestError(
                    f"the key {key!r} is written twice, first in line {first.line}",
                    hint="delete one of the two; YAML would silently keep the last",
                    location=location,
                )
            self.key_places[*path, key] = location
            yield key, value_node


def _key(node: yaml.Node, file: str) -> str:
    if isinstance(node, yaml.ScalarNode) and isinstance(_scalar(node), str):
        return str(node.value)
    if isinstance(node, yaml.ScalarNode):
        raise ManifestError(
            f"the key {node.value} is read as the {_scalar_type(node)} {_scalar(node)}",
            hint=f'quote it: "{node.value}"',
            location=_location(node, file),
        )
    raise ManifestError(f"a {_kind(node)} cannot be a key", hint="write a name", location=_location(node, file))


def _scalar(node: yaml.Node) -> Any:
    """Build one scalar by YAML 1.1's implicit types; dates stay text, since 2025-04-30 is a version here."""
    if node.tag == "tag:yaml.org,2002:timestamp":
        return node.value
    try:
        return _CONSTRUCTOR.construct_object(node)
    except (yaml.YAMLError, ValueError):
        return node.value
    finally:
        _CONSTRUCTOR.constructed_objects.clear()


def _scalar_type(node: yaml.ScalarNode) -> str:
    return "number" if _NUMBER.fullmatch(node.value) else type(_scalar(node)).__name__


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "value"


def _location(node: yaml.Node, file: str) -> Location:
    return Location(file, node.start_mark.line + 1, node.start_mark.column + 1)


def _location_of_offset(text: str, offset: int, file: str) -> Location:
    before = text[:offset]
    return Location(file, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _text_of(path: Path, file: str) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"cannot read {file}: {error.strerror}", location=Location(file)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ManifestError(
            f"the file is not UTF-8: byte 0x{raw[error.start]:02x}",
            hint="save it as UTF-8",
            location=Location(file, line, error.start - (raw[: error.start].rfind(b"\n") + 1) + 1),
        ) from None


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> ManifestError:
    mark = error.problem_mark or error.context_mark
    location = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    tab = _tab_in_indentation(text)
    if tab is not None:
        return ManifestError(
            "a tab in the indentation",
            hint="indent with spaces",
            location=Location(file, tab, 1),
        )
    return ManifestError(f"not valid YAML: {error.problem}", hint=error.context, location=location)


def _tab_in_indentation(text: str) -> int | None:
    for number, line in enumerate(text.splitlines(), start=1):
        if "\t" in line[: len(line) - len(line.lstrip())]:
            return number
    return None
