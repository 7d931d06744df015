"""JSON of others, read with an eye on its types: what is wrong is said with the path to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self, TypeVar

from lj_image.errors import ArtifactError

T = TypeVar("T")
_REQUIRED: Any = object()


def canonical(value: object) -> bytes:
    """Return JSON that is the same for the same value: keys sorted, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value, and where it stands: `the manifest: layers[2].size`."""

    found: Any
    document: str
    """What it is a part of, for messages."""
    path: str = ""

    @classmethod
    def parse(cls, content: bytes, document: str) -> Self:
        """Read a JSON object; raises ArtifactError for anything else."""
        value = cls._loaded(content, document)
        value.object()
        return value

    @classmethod
    def parse_array(cls, content: bytes, document: str) -> Self:
        """Read a JSON array; raises ArtifactError for anything else."""
        value = cls._loaded(content, document)
        if not isinstance(value.found, list):
            value.fail("an array")
        return value

    @classmethod
    def _loaded(cls, content: bytes, document: str) -> Self:
        try:
            return cls(json.loads(content), document)
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"{document} is not JSON: {error}") from None

    def fail(self, wanted: str) -> NoReturn:
        """Raise ArtifactError: this value is not what it should be."""
        where = f"{self.document}: {self.path}" if self.path else self.document
        shown = "missing" if self.found is None else f"{json.dumps(self.found, default=str)[:60]}"
        raise ArtifactError(f"{where} should be {wanted}, and is {shown}")

    def __getitem__(self, key: str) -> Value:
        """Return a member of an object; one that is missing is there as None."""
        return Value(self.object().get(key), self.document, f"{self.path}.{key}" if self.path else key)

    def __contains__(self, key: str) -> bool:
        return self.found is not None and self.object().get(key) is not None

    def object(self) -> Mapping[str, Any]:
        """Return an object."""
        if not isinstance(self.found, dict):
            self.fail("an object")
        return self.found

    def items(self) -> Iterator[Value]:
        """Yield the items of an array; nothing of one that is missing."""
        if self.found is None:
            return
        if not isinstance(self.found, list):
            self.fail("an array")
        for number, item in enumerate(self.found):
            yield Value(item, self.document, f"{self.path}[{number}]")

    def text(self, default: Any = _REQUIRED) -> str:
        """Return a text, or the default where it is missing."""
        return str(self._typed(str, "a text", default)) if self._is_there(default) else default

    def number(self, default: Any = _REQUIRED) -> int:
        """Return a whole number that is not negative."""
        if not self._is_there(default):
            return int(default)
        if not isinstance(self.found, int) or isinstance(self.found, bool) or self.found < 0:
            self.fail("a number of at least 0")
        return self.found

    def flag(self) -> bool:
        """Return a truth value; False where it is missing."""
        return bool(self._typed(bool, "true or false", False)) if self._is_there(False) else False

    def texts(self) -> tuple[str, ...]:
        """Return an array of texts; nothing where it is missing."""
        return tuple(item.text() for item in self.items())

    def text_map(self) -> dict[str, str]:
        """Return an object of texts; nothing where it is missing."""
        if self.found is None:
            return {}
        return {key: self[key].text("") for key in self.object()}

    def read(self, parse: Callable[[str], T]) -> T:
        """Return what a function makes of a text; whatever it raises names the place."""
        text = self.text()
        try:
            return parse(text)
        except ArtifactError as error:
            raise ArtifactError(f"{self.document}: {self.path}: {error.message}", hint=error.hint) from None

    def _is_there(self, default: Any) -> bool:
        return self.found is not None or default is _REQUIRED

    def _typed(self, kind: type, wanted: str, default: Any) -> Any:
        if not isinstance(self.found, kind):
            self.fail(wanted)
        return self.found
