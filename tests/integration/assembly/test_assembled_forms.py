"""Lazy layers and layers in zstd, by the command: other blobs, the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workshop import Workshop

from lj_image.oci.saved import open_image
from lj_image.oci.validate import validate
from samples.estargz_reader import opened


def manifest_of(workshop: Workshop, built: dict[str, Any]) -> dict[str, Any]:
    content = (workshop.oci / "blobs" / built["manifest"].replace(":", "/")).read_bytes()
    manifest: dict[str, Any] = json.loads(content)
    return manifest


def diff_ids(workshop: Workshop, built: dict[str, Any]) -> list[str]:
    config = manifest_of(workshop, built)["config"]["digest"]
    found: list[str] = json.loads((workshop.oci / "blobs" / config.replace(":", "/")).read_bytes())["rootfs"][
        "diff_ids"
    ]
    return found


def test_zstd_changes_the_blobs_above_the_base_and_no_tar(workshop: Workshop, tmp_path: Path) -> None:
    plain = workshop.build()
    small = workshop.build("--compression", "zstd", "--output", f"oci:{tmp_path}/out")
    before, after = (manifest_of(workshop, built)["layers"] for built in (plain, small))
    types = [layer["mediaType"].rpartition("+")[2].rpartition(".")[2] for layer in after]
    assert types[-1] == "zstd"
    base = len(types) - types.count("zstd")
    assert base >= 1
    assert before[:base] == after[:base], "a base stays as registries have it"
    assert diff_ids(workshop, small) == diff_ids(workshop, plain)
    validate(open_image(tmp_path / "out"))
    assert workshop.build("--compression", "zstd")["up_to_date"]


def test_zstd_is_compressed_by_the_level_of_the_config(workshop: Workshop) -> None:
    first = workshop.build("--compression", "zstd")
    project = workshop.project
    project.configure(json.loads(project.config.read_text()) | {"build": {"zstd_level": 9}})
    other = workshop.build("--compression", "zstd")
    assert not other["up_to_date"]
    assert workshop.layers(other["manifest"]) != workshop.layers(first["manifest"])


def test_a_lazy_image_has_a_table_in_each_layer_above_the_base(workshop: Workshop, tmp_path: Path) -> None:
    plain, lazy = workshop.build(), workshop.build("--lazy", "--output", f"oci:{tmp_path}/out")
    base = len({*workshop.layers(plain["manifest"])} & {*workshop.layers(lazy["manifest"])})
    assert base >= 1
    layers = manifest_of(workshop, lazy)["layers"][base:]
    assert layers
    for layer in layers:
        found = opened((workshop.oci / "blobs" / layer["digest"].replace(":", "/")).read_bytes())
        assert layer["annotations"]["containerd.io/snapshot/stargz/toc.digest"] == found.table_digest
        for entry in found.entries:
            if entry["type"] == "reg":
                found.read(entry["name"])
    validate(open_image(tmp_path / "out"))


def test_a_lazy_image_in_zstd_is_refused_before_any_work(workshop: Workshop) -> None:
    said = workshop.project.refuse(2, *workshop.arguments("--lazy", "--compression", "zstd"))
    assert "eStargz is a format of gzip layers" in said
    assert not workshop.oci.exists()
