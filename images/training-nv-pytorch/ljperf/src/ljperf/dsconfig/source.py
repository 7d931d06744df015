"""A config's text, read with the places of everything in it, and tolerant of what JSON forbids: it says where.

DeepSpeed reads Hjson (comments, trailing commas, bare keys), Transformers and Accelerate read JSON: a file may be right
for one and not for the others. So reading goes on after a fault, where it can, and gathers the faults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.errors import LjperfError


class ConfigNotReadError(LjperfError):
    """The file is not there, is no text, or is no JSON object even when read tolerantly."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file: both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """A config and where its parts are."""

    config: dict[str, Any]
    places: dict[str, Place]
    """Of every key, by JSON pointer; of "" the first brace."""
    faults: tuple[tuple[Finding, Place], ...]
    """What is not JSON, or not DeepSpeed's Hjson."""


def read(path: Path, *, strict_json: bool) -> Source:
    """Read a config file. Raises ConfigNotReadError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as failure:
        raise ConfigNotReadError(f"cannot be read: {failure.strerror}", location=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigNotReadError("is not UTF-8 text", hint="save it as UTF-8", location=str(path)) from None
    return parse(text, str(path), strict_json=strict_json)


def parse(text: str, name: str = "config", *, strict_json: bool) -> Source:
    """Read a config's text; `strict_json`: its reader takes only JSON (Transformers, Accelerate).

    Raises ConfigNotReadError with line and column where reading cannot go on.
    """
    reader = _Reader(text, name, strict_json)
    try:
        config = reader.whole()
    except RecursionError:
        raise ConfigNotReadError("is nested too deeply", location=name) from None
    return Source(config, reader.places, tuple(reader.faults))


NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
WORD = re.compile(r"[A-Za-z_$-][A-Za-z0-9_$.-]*")
LITERALS = {"true": True, "false": False, "null": None}
NOT_JSON = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
PYTHON = {"True": True, "False": False, "None": None}


@dataclass(slots=True)
class _Reader:
    text: str
    name: str
    strict_json: bool
    at: int = 0
    places: dict[str, Place] = field(default_factory=dict)
    faults: list[tuple[Finding, Place]] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        self.blanks()
        if self.peek() != "{":
            raise self.stop("a config is a JSON object: { … }")
        self.places[""] = self.place(self.at)
        value = self.object_(())
        self.blanks()
        if self.at < len(self.text):
            raise self.stop("there is more after the end of the config")
        return value

    def object_(self, path: tuple[object, ...]) -> dict[str, Any]:
        self.at += 1
        result: dict[str, Any] = {}
        while not self.closed("}", path):
            start = self.at
            key = self.key(path)
            pointer = pointer_of(*path, key)
            if key in result:
                self.duplicate(pointer, key, start)
            self.places[pointer] = self.place(start)
            self.blanks()
            if self.peek() != ":":
                raise self.stop(f"expected a colon after the key {key!r}")
            self.at += 1
            result[key] = self.value((*path, key))
            self.comma("}", path)
        return result

    def array(self, path: tuple[object, ...]) -> list[Any]:
        self.at += 1
        result: list[Any] = []
        while not self.closed("]", path):
            self.places[pointer_of(*path, len(result))] = self.place(self.at)
            result.append(self.value((*path, len(result))))
            self.comma("]", path)
        return result

    def closed(self, bracket: str, path: tuple[object, ...]) -> bool:
        self.blanks()
        if self.at >= len(self.text):
            opened = self.places.get(pointer_of(*path))
            where = f" (opened on line {opened.line})" if opened else ""
            raise self.stop(f"the file ends before {bracket!r} closes {pointer_of(*path) or 'the config'}{where}")
        if self.peek() != bracket:
            return False
        self.at += 1
        return True

    def comma(self, bracket: str, path: tuple[object, ...]) -> None:
        """One comma stands between two values; one more before the bracket is a fault that can be passed over."""
        self.blanks()
        if self.peek() == ",":
            start = self.at
            self.at += 1
            self.blanks()
            if self.peek() == bracket:
                self.fault(pointer_of(*path), "a comma before the closing bracket", start, hint="remove it")
        elif self.peek() not in (bracket, ""):
            raise self.stop("expected a comma or a closing bracket")

    def key(self, path: tuple[object, ...]) -> str:
        if self.peek() in "\"'":
            return self.string(path)
        word = WORD.match(self.text, self.at)
        if not word:
            raise self.stop("expected a key in double quotes")
        self.fault(pointer_of(*path, word[0]), f"the key {word[0]} is not in double quotes", self.at)
        self.at = word.end()
        return word[0]

    def value(self, path: tuple[object, ...]) -> Any:
        self.blanks()
        match self.peek():
            case "{":
                return self.object_(path)
            case "[":
                return self.array(path)
            case '"' | "'":
                return self.string(path)
        return self.scalar(path)

    def scalar(self, path: tuple[object, ...]) -> Any:
        bare = re.compile(r"[^\s,\]}#]*").match(self.text, self.at)
        word = bare[0] if bare else ""
        if word in LITERALS:
            value: Any = LITERALS[word]
        elif NUMBER.fullmatch(word):
            value = int(word) if re.fullmatch(r"-?\d+", word) else float(word)
        elif word in NOT_JSON or word in PYTHON:
            # Hjson takes the rest of the line for a text, Python's json takes NaN for a number: both go wrong later.
            self.faults.append(
                (error(pointer_of(*path), f"{word} is no JSON value", _instead(word)), self.place(self.at))
            )
            value = (NOT_JSON | PYTHON)[word]
        else:
            raise self.stop(f"expected a value, not {word!r}" if word else "expected a value")
        self.at += len(word)
        return value

    def string(self, path: tuple[object, ...]) -> str:
        import json

        quote, start = self.peek(), self.at
        found = re.compile(rf"{quote}(?:[^{quote}\\\n]|\\.)*{quote}").match(self.text, start)
        if not found:
            raise self.stop("a text that does not end on its line")
        self.at = found.end()
        if quote == "'":
            self.fault(pointer_of(*path), f"{found[0]} is in single quotes", start, hint="use double quotes")
            return found[0][1:-1]
        try:
            text: str = json.loads(found[0])
        except ValueError:
            self.at = start
            raise self.stop(f"{found[0]} has an escape or a letter that JSON does not know") from None
        return text

    def blanks(self) -> None:
        """Pass over blanks, and over comments with a fault each."""
        while True:
            blank = re.compile(r"\s*").match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            comment = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL).match(self.text, self.at)
            if not comment:
                return
            self.fault("", "a comment", self.at, hint="remove it, or hand the config over as a dictionary")
            self.at = comment.end()

    def duplicate(self, pointer: str, key: str, start: int) -> None:
        first = self.places[pointer].line
        message = f"the key {key!r} is here a second time (first on line {first})"
        finding = error(pointer, message, "keep one; DeepSpeed refuses it, Transformers takes the last")
        self.faults.append((finding, self.place(start)))

    def fault(self, pointer: str, what: str, start: int, hint: str | None = None) -> None:
        """What Hjson allows and JSON does not: an error only for a reader of JSON."""
        if self.strict_json:
            finding = error(pointer, f"{what}: JSON forbids it, so Transformers cannot read this file", hint)
        else:
            finding = warning(pointer, f"{what}: DeepSpeed reads it (Hjson), Transformers and Accelerate do not", hint)
        self.faults.append((finding, self.place(start)))

    def stop(self, what: str) -> ConfigNotReadError:
        place = self.place(self.at)
        return ConfigNotReadError(what, location=f"{self.name}:{place.line}:{place.column}")

    def place(self, at: int) -> Place:
        return Place(self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]


def _instead(word: str) -> str:
    if word in PYTHON:
        return f"write {'null' if word == 'None' else word.lower()}"
    return "write a number, or leave the key out"
