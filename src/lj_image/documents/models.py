"""A YAML file becomes a pydantic model; every finding names file, line and column, all in one error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lj_image.documents.nodes import Document, KeyPath, read_document
from lj_image.errors import Location, ManifestError
from lj_image.suggest import did_you_mean

Model = TypeVar("Model", bound=BaseModel)

_TYPE_NAMES = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "int_type": "a whole number",
}


def read_model(path: Path, model: type[Model], shown_as: str | None = None) -> tuple[Model, Document]:
    """Read a file and validate it; raises ManifestError that carries all findings."""
    document = read_document(path, shown_as)
    return validate(document, model), document


def validate(document: Document, model: type[Model]) -> Model:
    """Validate a parsed document; see `read_model`."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        findings = [_finding(item, document, model) for item in _most_specific(error, document)]
    findings.sort(key=lambda finding: (finding.location.line or 0) if finding.location else 0)
    first, *others = findings
    raise ManifestError(first.message, hint=first.hint, location=first.location, others=others)


def _most_specific(error: ValidationError, document: Document) -> list[Any]:
    """Keep one finding per place: a union reports one for each of its members."""
    by_place: dict[KeyPath, Any] = {}
    for item in error.errors(include_url=False):
        if item["type"] == "string_type" and isinstance(item["input"], dict):
            continue  # the long form was meant, and its own findings follow
        by_place.setdefault(_real_path(item["loc"], document.data, item["type"]), item)
    return [{**item, "loc": path} for path, item in by_place.items()]


def _real_path(loc: KeyPath, data: Any, kind: str) -> KeyPath:
    """Drop the parts of pydantic's path that name a member of a union, not a key of the file."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        is_missing_key = kind == "missing" and position == len(loc) - 1
        if isinstance(data, (dict, list)) and _holds(data, part):
            data = data[part]  # type: ignore[index]
        elif not is_missing_key:
            continue
        path.append(part)
    return tuple(path)


def _holds(data: dict[str, Any] | list[Any], part: str | int) -> bool:
    return part in data if isinstance(data, dict) else isinstance(part, int) and part < len(data)


def _finding(item: dict[str, Any], document: Document, model: type[BaseModel]) -> ManifestError:
    path: KeyPath = tuple(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    name = ".".join(str(part) for part in path) or document.file
    if kind == "extra_forbidden":
        return ManifestError(
            f"unknown key {path[-1]!r}" + (f" in {'.'.join(map(str, path[:-1]))}" if path[:-1] else ""),
            hint=did_you_mean(str(path[-1]), _keys_at(model, path[:-1]), noun="keys"),
            location=document.key_places.get(path) or document.place_of(path),
        )
    if kind == "missing":
        return ManifestError(
            f"{'.'.join(map(str, path[:-1])) or 'the file'} has no {path[-1]!r}",
            hint=f"add `{path[-1]}:`",
            location=document.place_of(path[:-1]),
        )
    location = document.place_of(path)
    if kind == "string_type" and path in document.texts:
        return _unquoted(name, document.texts[path], item["input"], location)
    if kind == "string_pattern_mismatch":
        return ManifestError(
            f"{name}: {_masked(item['input'])!r} is not written as it should be",
            hint=_pattern_hint(path, context["pattern"]),
            location=location,
        )
    if kind == "union_tag_invalid":
        kinds = re.findall(r"'([^']+)'", context["expected_tags"])
        return ManifestError(
            f"{name}: unknown kind {context['tag']!r}",
            hint=did_you_mean(context["tag"], kinds, noun="kinds"),
            location=location,
        )
    if kind == "union_tag_not_found":
        return ManifestError(f"{name} has no 'kind'", hint="add `kind: pip` or another kind", location=location)
    expected = _TYPE_NAMES.get(kind)
    message = f"found {item['input']!r}, expected {expected}" if expected else item["msg"]
    return ManifestError(f"{name}: {message}", location=location)


def _masked(text: str) -> str:
    """Hide what stands before the host of an address: it is refused there, and must not end in a log either."""
    return re.sub(r"(?<=://)[^/\s]*@", "***@", text)


def _unquoted(name: str, text: str, value: Any, location: Location) -> ManifestError:
    if value is None:
        return ManifestError(f"{name} has no value", hint=f'write one: `{name.split(".")[-1]}: "…"`', location=location)
    kind = "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
    return ManifestError(
        f"{name}: {text} is read as the {kind} {value}",
        hint=f'quote it: "{text}"',
        location=location,
    )


def _pattern_hint(path: KeyPath, pattern: str) -> str:
    if path and path[-1] in ("release", "previous"):
        return 'write year and month: "25.02"'
    if pattern.startswith("^[a-z0-9]+"):
        return "use lower case letters, digits and single . _ -"
    return f"it must match {pattern}"


def _keys_at(model: type[BaseModel], path: KeyPath) -> tuple[str, ...]:
    """Return the keys that the schema knows where the unknown one stands."""
    keys: list[str] = []
    for candidate in _models_at(model, path):
        keys.extend(field.alias or name for name, field in candidate.model_fields.items())
    return tuple(dict.fromkeys(keys))


def _models_at(model: type[BaseModel], path: KeyPath) -> list[type[BaseModel]]:
    found: list[Any] = [model]
    for part in path:
        found = [inner for outer in found for inner in _step(outer, part)]
    return [item for item in found if isinstance(item, type) and issubclass(item, BaseModel)]


def _step(outer: Any, part: str | int) -> list[Any]:
    if isinstance(outer, type) and issubclass(outer, BaseModel):
        field = outer.model_fields.get(str(part))
        return _unwrapped(field.annotation) if field else []
    arguments = getattr(outer, "__args__", ())
    return _unwrapped(arguments[-1]) if arguments else []


def _unwrapped(annotation: Any) -> list[Any]:
    """Open Annotated and unions, so that each alternative can be asked for its keys."""
    import types
    import typing

    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrapped(annotation.__args__[0])
    if origin in (typing.Union, types.UnionType):
        return [inner for argument in annotation.__args__ for inner in _unwrapped(argument)]
    return [annotation]
