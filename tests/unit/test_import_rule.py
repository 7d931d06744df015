"""Imports go one way; see docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "lj_image"

LEVELS = (
    {"errors", "suggest", "snapshot", "unzip", "whole"},
    {"documents", "oci"},
    {"config_schema"},
    {"config"},
    {"catalog"},
    {"lock", "manifest"},
    {"plan", "context"},
    {"templating"},
    {"dockerfile", "registry"},
    {"builders", "verify"},
    {"release", "doctor"},
    {"cli"},
)
"""From the ground up: a room imports from its own level and from those below."""

ALLOWED = {
    "build": ("builders/source_wheels/",),
    "docker": ("builders/docker/", "verify/", "release/", "cli/"),
    "httpx": ("lock/", "registry/"),
    "requests": ("builders/docker/", "verify/"),
    "click": ("cli/",),
    "pypi_simple": ("lock/",),
    "testinfra": ("verify/",),
    "jinja2": ("templating.py",),
    "markdown_it": ("release/notes/",),
    "pydantic": (
        "documents/",
        "catalog/schema.py",
        "catalog/endpoint_schema.py",
        "config_schema.py",
        "manifest/json_schema.py",
    ),
    "deflate": ("builders/oci/", "builders/source_wheels/"),
    "isal": ("builders/oci/", "oci/", "verify/", "release/"),
    "zstandard": ("builders/oci/", "oci/"),
}
"""Library -> the rooms that may know it."""


def imports_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each imported module, and whether it is only for the type checker."""
    tree = ast.parse(path.read_text())
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in checking) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in checking


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "lj_image" and len(parts) > 1 else None


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_imports_upwards(path: Path) -> None:
    level = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}
    relative = path.relative_to(SOURCE)
    own = relative.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module, only_types in imports_of(path):
        room = room_of(module)
        if room is not None and not only_types:
            assert level[room] <= level[own], f"{relative} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_library_is_known_only_in_its_rooms(path: Path) -> None:
    relative = path.relative_to(SOURCE).as_posix()
    for module, only_types in imports_of(path):
        rooms = ALLOWED.get(module.split(".")[0])
        if rooms is not None and not only_types:
            assert relative.startswith(rooms), f"{relative} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_grows_past_reading(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 420
