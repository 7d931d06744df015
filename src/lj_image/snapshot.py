"""Values kept from one run to the next, so that what was read and judged before is not read and judged again.

A snapshot is JSON, decoded by the fields and types of the dataclass that is asked for; it can hold nothing that runs.
Its name is the SHA-256 of all that the value was made from, this code included, so it is never out of date; whatever
is damaged, foreign or of another shape counts as absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lj_image.whole import write_whole

Value = TypeVar("Value")
Reader = Callable[[Any], Any]

MOST: Final = 128
"""Snapshots kept; each is some 10 KiB, and one is made for each release, variant and state of the files."""
_MAKERS: Final = (".", "catalog", "documents", "oci", "release/notes")
"""Folders of this package whose code, or data, decides what a snapshot holds."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """A folder of snapshots."""

    folder: Path

    def once(
        self,
        kind: type[Value],
        made_from: Callable[[], bytes],
        make: Callable[[], Value],
        holds: Callable[[Value], bool] = lambda kept: True,
    ) -> Value:
        """Return the value kept for `made_from()`, if it `holds`; else make it, and keep it unless that has changed.

        An error of `make` is raised, and never kept.
        """
        before = made_from()
        if (kept := self.read(before, kind)) is not None and holds(kept):
            return kept
        found = make()
        if made_from() == before:
            self.write(before, found)
        return found

    def read(self, made_from: bytes, kind: type[Value]) -> Value | None:
        """Return the value that was made from the very same bytes, or None."""
        with suppress(OSError, ValueError):
            digest, _, text = self._path(made_from, kind).read_bytes().partition(b"\n")
            if digest == _digest(text):
                return decode(kind, json.loads(text))
        return None

    def write(self, made_from: bytes, value: object) -> None:
        """Keep a value, and of the older ones not too many; does without where nothing can be written."""
        text = json.dumps(encode(value), ensure_ascii=False, separators=(",", ":")).encode()
        with suppress(OSError):
            write_whole(self._path(made_from, type(value)), _digest(text) + b"\n" + text)
            self._forget_oldest()

    def _path(self, made_from: bytes, kind: type[Any]) -> Path:
        return self.folder / (sha256(b"\0".join((_code(), kind.__name__.encode(), made_from))).hexdigest() + ".json")

    def _forget_oldest(self) -> None:
        found = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in found[:-MOST]:
            path.unlink(missing_ok=True)


def _digest(text: bytes) -> bytes:
    return sha256(text).hexdigest().encode()


@cache
def _code() -> bytes:
    """Return what changes with every change of the code that makes snapshots, in a development tree, too."""
    package = os.path.dirname(__file__)  # noqa: PTH120 - a third of the time that pathlib takes for the same
    found = [
        f"{folder}/{entry.name} {entry.stat().st_size} {entry.stat().st_mtime_ns}"
        for folder in _MAKERS
        for entry in os.scandir(os.path.join(package, folder))  # noqa: PTH118
        if entry.name.endswith((".py", ".yaml"))
    ]
    return "\n".join((package, *sorted(found))).encode()


def encode(value: object) -> Any:
    """Return a dataclass as plain lists and mappings; the `kind` of its class, if there is one, is among the fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return _tag(type(value)) | {item.name: encode(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def decode(kind: type[Value], plain: Any) -> Value:
    """Return the dataclass that `encode` made plain; raises ValueError for anything else."""
    return cast(Value, _reader(cast(Hashable, kind))(plain))


@cache
def _reader(hint: Any) -> Reader:
    """Return the function that reads a value of a type; it raises ValueError for any other."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_read_record, hint, {name: _reader(item) for name, item in _hints(hint).items()})
    if origin is Literal:
        return partial(_read_literal, arguments)
    if origin in (Union, UnionType):
        return partial(_read_union, arguments)
    if origin is tuple:
        return (
            partial(_read_list, _reader(arguments[0]))
            if arguments[1:] == (...,)
            else partial(_read_tuple, tuple(map(_reader, arguments)))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return partial(_read_mapping, _reader(arguments[1]))
    return _read_path if hint is Path else partial(_read_exactly, hint)


def _hints(record: Any) -> dict[str, Any]:
    hints = get_type_hints(record)
    return {item.name: hints[item.name] for item in fields(record)}


def _tag(record: type[Any]) -> dict[str, str]:
    """Return the constant `kind` of a class that is one of several: BaseSource, PipSource …"""
    kind = vars(record).get("kind")
    return {"kind": kind} if isinstance(kind, str) else {}


def _read_record(record: type[Any], readers: Mapping[str, Reader], plain: Any) -> Any:
    values, tag = _read_exactly(dict, plain), _tag(record)
    if values.keys() != {*readers, *tag} or any(values[name] != kind for name, kind in tag.items()):
        raise ValueError(f"not the fields of {record.__name__}")
    return record(**{name: reader(values[name]) for name, reader in readers.items()})


def _read_union(members: tuple[Any, ...], plain: Any) -> Any:
    for member in members:
        with suppress(ValueError):
            return _reader(member)(plain)
    raise ValueError("no member of the union")


def _read_literal(allowed: tuple[Any, ...], plain: Any) -> Any:
    if plain not in allowed:
        raise ValueError("not one of the words")
    return plain


def _read_list(reader: Reader, plain: Any) -> tuple[Any, ...]:
    return tuple(map(reader, _read_exactly(list, plain)))


def _read_tuple(readers: tuple[Reader, ...], plain: Any) -> tuple[Any, ...]:
    return tuple(reader(item) for reader, item in zip(readers, _read_exactly(list, plain), strict=True))


def _read_mapping(reader: Reader, plain: Any) -> dict[str, Any]:
    return {key: reader(item) for key, item in _read_exactly(dict, plain).items()}


def _read_path(plain: Any) -> Path:
    return Path(_read_exactly(str, plain))


def _read_exactly(kind: type[Any], plain: Any) -> Any:
    if type(plain) is not kind:
        raise ValueError(f"not of type {kind.__name__}")
    return plain
