"""A value of a YAML text is replaced or added at its exact place; every other byte stays as it is.

Places come from PyYAML's nodes. Its own printer would lose comments, quotes and spacing, so text is spliced instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from lj_image.manifest.scalars import version_text

Path = tuple[str, ...]
"""Keys from the top of a document down to a mapping."""
Rank = Callable[[Path, str], int]
"""Where a key of the mapping at a path stands among its neighbours."""

_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor or a tag before a value: PyYAML counts it as part of the node."""
_COMMENTED: Final = re.compile(
    r"^(?P<indent> *)# ?(?P<entry>\S+ *: +\S+)(?P<rest>[ \t]*(?:#[^\r\n]*)?)(?=\r?$)", re.MULTILINE
)
"""A whole entry behind a `#`, such as `# vllm: 0.7.2   # as before`, and not a sentence with a colon."""
_COMMENTS_ABOVE: Final = re.compile(r"(?:^[ \t]*#[^\n]*\n)+\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Entry:
    key: yaml.Node
    value: yaml.Node


def set_scalar(text: str, path: Path, value: str) -> str:
    """Replace the scalar at a path that exists."""
    return _replaced(text, _at(_compose(text), path), value)


def add_scalar(text: str, path: Path, name: str, value: str, rank: Rank) -> str:
    """Add `name: value` to the mapping at a path, and the mappings on the way that are absent or empty.

    A line that holds the entry behind a `#` becomes the entry; otherwise it stands after the neighbour of the next
    lower rank.
    """
    mapping, depth, empty = _deepest(_compose(text), path)
    keys = (*path[depth:], name)
    if not mapping.flow_style and len(keys) == (1 if empty is None else 2):
        place = _commented(text, mapping, empty, name)
        if place is not None:
            return _uncommented(text, place, value)
    if empty is not None:
        return _filled(text, mapping, empty, keys[1:], value)
    before = _before(mapping, rank(path[:depth], keys[0]), lambda key: rank(path[:depth], key))
    if mapping.flow_style:
        return _added_to_flow(text, mapping, before, _flow(keys, value))
    return _added_to_block(text, mapping, before, keys, value)


def _compose(text: str) -> yaml.MappingNode:
    node = yaml.compose(text, Loader=yaml.SafeLoader)  # not libyaml's: its marks count bytes in some versions
    assert isinstance(node, yaml.MappingNode), "the schema was held against this text before"
    return node


def _entries(node: yaml.MappingNode) -> list[_Entry]:
    return [_Entry(key, value) for key, value in node.value]


def _find(node: yaml.MappingNode, key: str) -> _Entry | None:
    return next((entry for entry in _entries(node) if entry.key.value == key), None)


def _at(node: yaml.Node, path: Path) -> yaml.ScalarNode:
    for key in path:
        assert isinstance(node, yaml.MappingNode)
        entry = _find(node, key)
        assert entry is not None, path
        node = entry.value
    assert isinstance(node, yaml.ScalarNode)
    return node


def _deepest(node: yaml.MappingNode, path: Path) -> tuple[yaml.MappingNode, int, _Entry | None]:
    """Return the last mapping on the way, how many keys lead to it, and its entry on the way that has no value."""
    for depth, key in enumerate(path):
        entry = _find(node, key)
        if entry is None or not isinstance(entry.value, yaml.MappingNode):
            return node, depth, entry
        node = entry.value
    return node, len(path), None


def _replaced(text: str, node: yaml.ScalarNode, value: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    properties = _PROPERTIES.match(text, start, end)
    start = properties.end() if properties else start
    end = start + len(text[start:end].rstrip())  # a block scalar ends where the next line begins
    return text[:start] + version_text(value, node.style) + text[end:]


def _before(mapping: yaml.MappingNode, rank: int, rank_of: Callable[[str], int]) -> _Entry | None:
    """Return the entry after which a key of this rank belongs."""
    lower = [(rank_of(entry.key.value), number) for number, entry in enumerate(_entries(mapping))]
    lower = [item for item in lower if item[0] < rank]
    return _entries(mapping)[max(lower)[1]] if lower else None


def _added_to_block(text: str, mapping: yaml.MappingNode, before: _Entry | None, keys: Path, value: str) -> str:
    column = _column(mapping)
    lines = _block(keys, value, column, _step(text), newline_of(text))
    if before is not None:
        return _inserted(text, _end_of_entry(text, before), lines)
    first = mapping.value[0][0].start_mark
    return _inserted(text, first.index - first.column, lines)


def _filled(text: str, mapping: yaml.MappingNode, empty: _Entry, keys: Path, value: str) -> str:
    """Give an entry without a value, such as a bare `components:`, its first line."""
    if mapping.flow_style:
        place = empty.key.end_mark.index
        colon = re.compile(r"\s*:?").match(text, place)
        return text[:place] + ": {" + _flow(keys, value) + "}" + text[colon.end() if colon else place :]
    column = _column(mapping) + _step(text)
    place = _end_of_line(text, max(empty.key.end_mark.index, empty.value.end_mark.index))
    return _inserted(text, place, _block(keys, value, column, _step(text), newline_of(text)))


def _added_to_flow(text: str, mapping: yaml.MappingNode, before: _Entry | None, entry: str) -> str:
    if not mapping.value:
        place = text.index("{", mapping.start_mark.index) + 1
        return text[:place] + entry + text[place:]
    first = mapping.value[0][0].start_mark
    own_lines = first.line != mapping.start_mark.line
    between = "," + (newline_of(text) + " " * first.column if own_lines else " ")
    if before is None:
        return text[: first.index] + entry + between + text[first.index :]
    place = before.value.end_mark.index
    return text[:place] + between + entry + text[place:]


def _commented(text: str, mapping: yaml.MappingNode, empty: _Entry | None, name: str) -> re.Match[str] | None:
    """Return the line that holds an entry of this name behind a `#`, within a block mapping."""
    start, end = _region(text, mapping, empty)
    for found in _COMMENTED.finditer(text, start, end):
        column = len(found["indent"])
        fits = column > _column(mapping) if empty is not None else column == _column(mapping)
        if fits and (entry := _entry_in(found["entry"])) is not None and entry.key.value == name:
            return found
    return None


def _entry_in(line: str) -> _Entry | None:
    """Return the one entry with a plain value that a line holds."""
    try:
        node = yaml.compose(line, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return None
    entry = _entries(node)[0]
    return entry if isinstance(entry.key, yaml.ScalarNode) and isinstance(entry.value, yaml.ScalarNode) else None


def _uncommented(text: str, found: re.Match[str], value: str) -> str:
    entry = _entry_in(found["entry"])
    assert entry is not None
    assert isinstance(entry.value, yaml.ScalarNode)
    line = found["indent"] + _replaced(found["entry"], entry.value, value) + found["rest"]
    return text[: found.start()] + line + text[found.end() :]


def _region(text: str, mapping: yaml.MappingNode, empty: _Entry | None) -> tuple[int, int]:
    """Return where lines of a block mapping, or of the one that an entry has yet to get, may stand."""
    if empty is not None:
        return _end_of_line(text, empty.key.end_mark.index), _end_of_entry(text, empty)
    above = _COMMENTS_ABOVE.search(text, 0, mapping.start_mark.index - mapping.start_mark.column)
    start = above.start() if above else mapping.start_mark.index
    end = _end_of_entry(text, _entries(mapping)[-1])
    return start, _after_comments(text, end, _column(mapping))


def _column(mapping: yaml.MappingNode) -> int:
    column: int = mapping.value[0][0].start_mark.column if mapping.value else mapping.start_mark.column
    return column


def _step(text: str) -> int:
    """Return by how much this file indents: as its first line that is indented at all."""
    found = re.search(r"^( +)[^\s#-]", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _block(keys: Path, value: str, column: int, step: int, newline: str) -> str:
    """Write nested keys on a line each; every line ends."""
    *outer, name = keys
    lines = [f"{' ' * (column + number * step)}{version_text(key)}:" for number, key in enumerate(outer)]
    lines.append(f"{' ' * (column + len(outer) * step)}{version_text(name)}: {version_text(value)}")
    return "".join(line + newline for line in lines)


def _flow(keys: Sequence[str], value: str) -> str:
    first, *inner = keys
    return f"{version_text(first)}: " + (f"{{{_flow(inner, value)}}}" if inner else version_text(value))


def _inserted(text: str, place: int, lines: str) -> str:
    """Insert whole lines where a line begins; a text without a final line end stays without."""
    if place == len(text) and not text.endswith("\n"):
        newline = newline_of(text)
        return text + newline + lines.removesuffix(newline)
    return text[:place] + lines + text[place:]


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def _end_of_line(text: str, place: int) -> int:
    """Return where the line after the one at `place` begins."""
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _end_of_entry(text: str, entry: _Entry) -> int:
    """Return where the line after an entry begins, with the comments that are indented below it."""
    last = _last(entry.value)
    start, end = last.start_mark.index, last.end_mark.index
    written = max(start + len(text[start:end].rstrip()), entry.key.end_mark.index)
    return _after_comments(text, _end_of_line(text, written), entry.key.start_mark.column + 1)


def _after_comments(text: str, place: int, column: int) -> int:
    """Return where the comments from `place` on end that stand in this column or further to the right."""
    comments = re.compile(rf"(?:[ \t]*\r?\n)*[ ]{{{column},}}#[^\n]*(?:\n|$)")
    while (found := comments.match(text, place)) is not None:
        place = found.end()
    return place


def _last(node: yaml.Node) -> yaml.Node:
    """Return the last node of a block: the end of a block itself lies at the next key, behind its comments."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _last(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _last(node.value[-1])
    return node
