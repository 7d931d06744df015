"""Two platforms in one image, assembled on one machine, where nothing of the other one can run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from workshop import Workshop, files_of, images_in

from lj_image.oci.layout import Layout
from lj_image.oci.validate import validate
from samples.images import AMD64
from standins import stack

BOTH = ("--platform", "linux/amd64,linux/arm64")
NATIVE = "usr/local/lib/python3.11/dist-packages/native/core.so"


def test_one_index_holds_an_image_for_each_platform_with_the_wheels_of_that(
    workshop: Workshop, tmp_path: Path, skopeo: Callable[..., str]
) -> None:
    found = workshop.build(*BOTH, "--output", f"oci:{tmp_path}/out", "--output", f"oci-archive:{tmp_path}/out.tar")
    assert [item["platform"] for item in found] == ["linux/amd64", "linux/arm64"]
    for image, processor in zip(images_in(tmp_path / "out"), (b"x86_64", b"aarch64"), strict=True):
        validate(image)
        files = files_of(image)
        assert files[NATIVE] == processor
        assert files["usr/bin/python3"].decode() == f"linux/{image.settings.architecture}", "its own base"
    for place in (f"oci:{tmp_path}/out:25.02-two", f"oci-archive:{tmp_path}/out.tar"):
        for item, architecture in zip(found, ("amd64", "arm64"), strict=True):
            seen = json.loads(skopeo("--override-arch", architecture, "inspect", place))
            assert seen["Architecture"] == architecture
            raw = skopeo("--override-arch", architecture, "inspect", "--config", "--raw", place)
            assert json.loads(raw)["architecture"] == architecture
            assert item["manifest"] in skopeo("inspect", "--raw", place)
    skopeo("copy", "--all", f"oci:{tmp_path}/out:25.02-two", f"oci:{tmp_path}/copy:25.02-two")
    names = [Layout.open(tmp_path / folder).references()["25.02-two"].digest for folder in ("out", "copy")]
    assert names[0] == names[1]


def test_layers_without_native_code_are_shared_by_the_platforms(workshop: Workshop) -> None:
    amd64, arm64 = workshop.build(*BOTH)
    assert amd64["manifest"] != arm64["manifest"]
    layers = [set(workshop.layers(item["manifest"])) for item in (amd64, arm64)]
    # Kit, notes, bulk, gadget and the constraints; native and the base are each platform's own.
    assert len(layers[0] & layers[1]) == 5
    assert len(layers[0] - layers[1]) == 2


def test_each_platform_has_a_record_of_its_own_and_is_up_to_date(workshop: Workshop) -> None:
    workshop.build(*BOTH)
    records = workshop.project.cache / "records/assembled"
    assert {path.name for path in records.glob("*.json")} == {"25.02-two.json", "25.02-two-arm64.json"}
    again = workshop.build(*BOTH)
    assert [item["up_to_date"] for item in again] == [True, True]
    assert workshop.build("--platform", "linux/arm64")["up_to_date"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("engine", "--output engine holds one platform, and 2 are built"),
        ("docker-archive:x.tar", "--output docker-archive:x.tar holds one platform, and 2 are built"),
    ],
)
def test_what_holds_one_platform_takes_no_two(place: str, message: str, workshop: Workshop) -> None:
    assert message in workshop.project.refuse(2, *workshop.arguments(*BOTH, "--output", place))
    assert not workshop.oci.exists()


def test_a_platform_without_a_lock_is_told_before_any_work(workshop: Workshop) -> None:
    (workshop.project.folder / "images/assembled/locks/25.02-two-arm64.txt").unlink()
    assert "lj-image lock 25.02 --variant two --platform linux/arm64" in workshop.project.refuse(
        2, *workshop.arguments(*BOTH)
    )
    assert not workshop.oci.exists()


def test_a_platform_that_the_release_is_not_made_for_is_told_before_any_work(workshop: Workshop) -> None:
    release = workshop.project.folder / "images/assembled/releases/25.02.yaml"
    release.write_text(release.read_text().replace("[amd64, arm64]", "[amd64]"))
    assert "25.02 is not made for arm64" in workshop.project.refuse(2, *workshop.arguments(*BOTH))
    assert not workshop.oci.exists()


def test_a_base_without_the_platform_is_told_before_any_layer_is_made(workshop: Workshop, tmp_path: Path) -> None:
    alone = Workshop(workshop.project, stack.base(tmp_path / "alone", AMD64))
    said = alone.project.refuse(2, *alone.arguments(*BOTH))
    assert "linux/arm64" in said
    assert list((alone.oci / "layers").glob("*")) == []
    assert not (alone.project.cache / "records").exists()
    assert alone.build()["platform"] == "linux/amd64"


def test_an_unknown_platform_is_told(workshop: Workshop) -> None:
    said = workshop.project.refuse(2, *workshop.arguments("--platform", "linux/amd64,linux/riscv64"))
    assert "linux/riscv64" in said


def test_a_platform_is_asked_for_once(workshop: Workshop) -> None:
    said = workshop.project.refuse(2, *workshop.arguments("--platform", "linux/amd64,linux/amd64"))
    assert "the platform linux/amd64 is asked for twice" in said
    assert not workshop.oci.exists()
