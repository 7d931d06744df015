"""Where an assembled image is written to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.errors import BuildError, UsageError
from lj_image.oci.layout import Layout
from lj_image.oci.reference import Reference
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, SourceLayer
from lj_image.oci.validate import validate
from lj_image.release.outputs import Output, require_possible, write
from samples.images import AMD64, ARM64, image

NAME = Reference.parse("tiny:25.02")
FORMS = ("oci", "oci-archive", "docker-archive")


@pytest.mark.parametrize(
    "text", ["", "oci", "oci:", "engine:x", "docker:x", "tarball:x.tar", "oci-archive", "docker-archive:"]
)
def test_what_names_no_place_is_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(UsageError, match="names no place") as caught:
        Output.parse(text)
    assert "docker-archive:FILE" in str(caught.value.hint)


def test_places_are_read_and_told_as_other_tools_write_them() -> None:
    for text in ("engine", "oci:a folder", "oci-archive:/x:y.tar", "docker-archive:x.tar"):
        assert str(Output.parse(text)) == text
    assert Output.parse("oci:~/x").path == Path.home() / "x"


@pytest.mark.parametrize("form", ["oci-archive", "docker-archive"])
def test_a_folder_is_no_file(form: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        require_possible([Output.parse(f"{form}:{tmp_path}")], 1)
    require_possible([Output.parse(f"oci:{tmp_path}"), Output.parse(f"{form}:{tmp_path}/new.tar")], 1)


def test_a_file_is_no_folder_for_a_layout(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("text")
    with pytest.raises(UsageError, match="is a file"):
        require_possible([Output.parse(f"oci:{tmp_path}/README.md")], 1)


@pytest.mark.parametrize("text", ["engine", "docker-archive:x.tar"])
def test_several_platforms_need_a_place_that_holds_several(text: str) -> None:
    with pytest.raises(UsageError, match="holds one platform, and 2 are built"):
        require_possible([Output.parse(text)], 2)
    require_possible([Output.parse(text)], 1)
    require_possible([Output.parse("oci:x"), Output.parse("oci-archive:x.tar")], 2)


@pytest.mark.parametrize("form", FORMS)
def test_an_image_comes_back_as_it_was(form: str, tmp_path: Path) -> None:
    wanted, place = image(tmp_path / "blobs"), tmp_path / "new" / "place"
    for _ in range(2):  # what is there is written over
        write(Output.parse(f"{form}:{place}"), [wanted], NAME)
        found = open_image(place)
        validate(found)
        assert found.config == wanted.config
    assert [path.name for path in place.parent.iterdir()] == ["place"]


@pytest.mark.parametrize("form", ["oci", "oci-archive"])
def test_platforms_lie_side_by_side(form: str, tmp_path: Path) -> None:
    every = [image(tmp_path / "blobs", platform=platform) for platform in (AMD64, ARM64)]
    write(Output.parse(f"{form}:{tmp_path}/place"), every, NAME)
    for wanted, platform in zip(every, (AMD64, ARM64), strict=True):
        assert open_image(tmp_path / "place", platform).config == wanted.config


@pytest.mark.parametrize("form", ["oci-archive", "docker-archive"])
def test_a_file_that_could_not_be_finished_leaves_the_one_before(form: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    write(Output.parse(f"{form}:{place}"), [image(tmp_path / "blobs")], NAME)
    before = place.read_bytes()

    def fails() -> object:
        raise OSError(5, "Input/output error")

    whole = image(tmp_path / "blobs")
    layer = SourceLayer(
        whole.layers[0].diff_id,
        "gzip",
        whole.layers[0].size_bytes,
        fails,
        whole.layers[0].descriptor,  # type: ignore[arg-type]
    )
    broken = SourceImage(whole.name, whole.config, (layer, whole.layers[1]), whole.manifest, whole.descriptor)
    with pytest.raises(BuildError, match=f"{form}:.* cannot be written: Input/output error"):
        write(Output.parse(f"{form}:{place}"), [broken], NAME)
    assert place.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"place", "blobs"}


def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").touch()
    with pytest.raises(UsageError, match="holds other things"):
        write(Output.parse(f"oci:{tmp_path}/mine"), [image(tmp_path / "blobs")], NAME)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter"]


def test_a_layout_keeps_the_images_that_it_has(tmp_path: Path) -> None:
    one, two = image(tmp_path / "blobs"), image(tmp_path / "blobs", cmd=("/other",))
    write(Output.parse(f"oci:{tmp_path}/place"), [one], NAME)
    write(Output.parse(f"oci:{tmp_path}/place"), [two], Reference.parse("tiny:25.03"))
    assert set(Layout.open(tmp_path / "place").references()) == {"25.02", "25.03"}
