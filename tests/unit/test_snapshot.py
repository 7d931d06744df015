from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from lj_image import config, config_schema
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Platform, Release
from lj_image.catalog.selection import buildable
from lj_image.config import Config, ConfigFile, Source
from lj_image.snapshot import MOST, Snapshots, _code, decode, encode
from unit.completeness import kinds

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Square:
    kind = "square"
    side: int


@dataclass(frozen=True, slots=True)
class Circle:
    kind = "circle"
    radius: int


@dataclass(frozen=True, slots=True)
class Drawing:
    shapes: tuple[Square | Circle, ...]
    size: tuple[int, str]
    names: Mapping[str, tuple[str, ...]]
    file: Path
    mode: Literal["ink", "lead"]
    note: str | None = None


DRAWING = Drawing((Square(2), Circle(3)), (4, "cm"), {"a": ("x", "y")}, Path("/d"), "ink")
PLAIN = {
    "shapes": [{"kind": "square", "side": 2}, {"kind": "circle", "radius": 3}],
    "size": [4, "cm"],
    "names": {"a": ["x", "y"]},
    "file": "/d",
    "mode": "ink",
    "note": None,
}


def test_a_value_is_plain_json_and_comes_back_as_it_was() -> None:
    assert encode(DRAWING) == PLAIN
    assert decode(Drawing, json.loads(json.dumps(PLAIN))) == DRAWING


@pytest.mark.parametrize(
    "change",
    [
        {"note": 1},
        {"mode": "chalk"},
        {"size": [4]},
        {"size": ["4", "cm"]},
        {"names": {"a": "x"}},
        {"file": None},
        {"shapes": [{"kind": "circle", "side": 2}]},
        {"shapes": [{"side": 2}]},
        {"shapes": [{"kind": "square", "side": True}]},
        {"one more": 1},
    ],
)
def test_another_shape_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not|other|no|zip"):
        decode(Drawing, PLAIN | change)


def test_every_release_that_there_is_comes_back_as_it_was(tmp_path: Path) -> None:
    source = Source(url="https://vendor.example")
    names = ("vendor", "kits", "accl-n")
    values = ConfigFile(indexes=dict.fromkeys(names, source), archives=dict.fromkeys(names, source))
    known = Config(None, values, tmp_path)
    roots = (ROOT / "images", ROOT / "tests" / "families")
    found = [item for root in roots for item in _releases(root, known, tmp_path)]
    assert {part.source.kind for item in found for part in item.components} == {kind.name for kind in kinds()}
    for release in found:
        assert decode(Release, json.loads(json.dumps(encode(release)))) == release


def _releases(root: Path, known: Config, scratch: Path) -> list[Release]:
    together = scratch / root.name  # the base of every-kind is that of the repository
    together.mkdir()
    for folder in (*root.iterdir(), ROOT / "images" / "base-os"):
        if not (together / folder.name).exists():
            (together / folder.name).symlink_to(folder)
    return list(buildable(Catalog(together), known, None, None, Platform()))


def test_the_schema_of_the_config_and_its_values_have_the_same_fields() -> None:
    pairs = {"ConfigSchema": "ConfigFile", "EndpointsEntry": "EndpointsConfig", "BuildEntry": "BuildConfig"}
    pairs["RegistryEntry"] = "RegistryConfig"
    for name, model in vars(config_schema).items():
        if isinstance(model, type) and issubclass(model, BaseModel) and model.__module__ == config_schema.__name__:
            value = getattr(config, pairs.get(name, name.removesuffix("Entry")))
            assert is_dataclass(value)
            assert [item.name for item in fields(value)] == list(model.model_fields), name
            assert (
                encode(value(url="x") if name == "SourceEntry" else value())
                == (model.model_construct(url="x") if name == "SourceEntry" else model()).model_dump()
            ), name


def test_only_the_very_same_bytes_and_type_find_a_value(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "snapshots")
    snapshots.write(b"made from this", DRAWING)
    assert snapshots.read(b"made from this", Drawing) == DRAWING
    assert snapshots.read(b"made from that", Drawing) is None
    assert snapshots.read(b"made from this", Square) is None


def test_what_is_damaged_counts_as_absent(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    snapshots.write(b"", DRAWING)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], whole.replace(b"cm", b"km"), b"\xff\xfe", b"[" * 9999):
        path.write_bytes(damaged)
        assert snapshots.read(b"", Drawing) is None
    path.unlink()
    path.mkdir()
    assert snapshots.read(b"", Drawing) is None
    snapshots.write(b"", DRAWING)  # does without
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    snapshots = Snapshots(tmp_path / "file" / "snapshots")
    snapshots.write(b"", DRAWING)
    assert snapshots.read(b"", Drawing) is None


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for number in range(MOST + 3):
        snapshots.write(str(number).encode(), Square(number))
    assert len(list(tmp_path.iterdir())) == MOST
    assert snapshots.read(str(MOST + 2).encode(), Square) == Square(MOST + 2)


def test_the_profiles_that_come_with_the_tool_are_part_of_what_decides() -> None:
    assert b"catalog/profiles.yaml" in _code()
    assert b"oci/capabilities.py" in _code()
