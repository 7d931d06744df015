"""What is sent to an engine, and what its answers mean; tests/integration/test_loading_images.py has a real one."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker.errors import ImageNotFound

from lj_image.builders.docker.loading import find_loaded, load_image
from lj_image.errors import ArtifactError, EngineError
from lj_image.oci.source import SourceImage
from standins.assembled import tiny_image


class Engine:
    """An engine of a few lines: it takes what it is sent, unless it is told to refuse."""

    timeout = 60
    api_version = "1.42"

    def __init__(self, *, containerd: bool = False) -> None:
        self.driver = "io.containerd.snapshotter.v1" if containerd else "overlay2"
        self.by_name: dict[str, dict[str, Any]] = {}
        self.sent: list[list[str]] = []
        self.answers: list[list[dict[str, Any]]] = []
        self.config: dict[str, Any] = {}

    def inspect_image(self, name: str) -> dict[str, Any]:
        try:
            return self.by_name[name]
        except KeyError:
            raise ImageNotFound("no such image") from None

    def info(self) -> dict[str, Any]:
        return {"DriverStatus": [["driver-type", self.driver]]}

    def images(self) -> list[dict[str, Any]]:
        return [{"Id": name} for name in self.by_name]

    def load_image(self, chunks: Iterable[bytes]) -> list[dict[str, Any]]:
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            self.sent.append(tar.getnames())
            saved = json.load(tar.extractfile("manifest.json"))[0]  # type: ignore[arg-type]
            config = json.load(tar.extractfile(saved["Config"]))  # type: ignore[arg-type]
        answers = self.answers.pop(0) if self.answers else [{"stream": "Loaded"}]
        if not any("error" in message or "errorDetail" in message for message in answers):
            image_id = "sha256:" + saved["Config"].rpartition("/")[2]
            found = {"Id": image_id, "RootFS": {"Layers": config["rootfs"]["diff_ids"]}, "Config": config["config"]}
            self.by_name |= {saved["RepoTags"][0]: found, image_id: found}
        return answers


@pytest.fixture
def image(tmp_path: Path) -> SourceImage:
    return tiny_image(tmp_path, "one", "two", labels={"a": "b"})


def load(engine: Engine, image: SourceImage, name: str = "tiny:1", **options: Any) -> str:
    return load_image(engine, image, name, say=options.pop("say", lambda line: None), **options)  # type: ignore[arg-type]


def layers_sent(engine: Engine, image: SourceImage) -> int:
    blobs = {f"blobs/sha256/{layer.descriptor.digest.hex}" for layer in image.layers if layer.descriptor}
    return len(blobs & set(engine.sent[-1]))


def test_an_image_is_sent_once_with_a_line_that_says_so(image: SourceImage) -> None:
    engine, said = Engine(), list[str]()
    assert load(engine, image, say=said.append) == str(image.image_id)
    assert load(engine, image, say=said.append) == str(image.image_id)
    assert len(engine.sent) == 1
    assert said == ["loading tiny:1 into the engine: 2 layers, 0.0 MiB"]


def test_layers_that_the_engine_has_under_the_same_ones_are_not_sent(image: SourceImage, tmp_path: Path) -> None:
    engine, said = Engine(), list[str]()
    load(engine, image)
    larger = tiny_image(tmp_path, "three", name="tiny:2", below=image)
    load(engine, larger, "tiny:2", say=said.append)
    assert layers_sent(engine, larger) == 1
    assert said == ["loading tiny:2 into the engine: 1 layers, 0.0 MiB; it has the other 2"]
    other = tiny_image(tmp_path, "two", "one", name="tiny:3")
    load(engine, other, "tiny:3")
    assert layers_sent(engine, other) == 2


def test_an_engine_on_containerd_gets_every_layer(image: SourceImage, tmp_path: Path) -> None:
    engine = Engine(containerd=True)
    load(engine, image)
    larger = tiny_image(tmp_path, "three", name="tiny:2", below=image)
    load(engine, larger, "tiny:2")
    assert layers_sent(engine, larger) == 3


def test_all_layers_are_sent_when_those_it_had_went_away(image: SourceImage, tmp_path: Path) -> None:
    engine = Engine()
    load(engine, image)
    engine.answers = [[{"errorDetail": {"message": "open blobs/sha256/…: no such file"}, "error": "x"}]]
    larger = tiny_image(tmp_path, "three", name="tiny:2", below=image)
    load(engine, larger, "tiny:2")
    assert layers_sent(engine, larger) == 3


@pytest.mark.parametrize("message", [{"error": "no space left"}, {"errorDetail": {"message": "no space left"}}])
def test_an_error_in_any_message_is_raised(image: SourceImage, message: dict[str, Any]) -> None:
    engine = Engine()
    engine.answers = [[{"stream": "…"}, message, {"stream": "Loaded image: tiny:1"}]]
    with pytest.raises(EngineError, match="refuses tiny:1: no space left"):
        load(engine, image)


def test_layers_in_zstd_are_not_sent_to_an_engine_that_cannot_read_them(image: SourceImage) -> None:
    lower, upper = image.layers
    mixed = replace(image, layers=(lower, replace(upper, compression="zstd")))
    engine = Engine()
    engine.api_version = "1.41"
    with pytest.raises(EngineError, match=r"older than 23\.0, and reads no layers in zstd") as caught:
        load(engine, mixed)
    assert "without --compression zstd" in str(caught.value.hint)
    assert not engine.sent
    engine.api_version = "1.100"
    load(engine, mixed)


def test_an_engine_that_shows_another_image_afterwards_is_not_believed(image: SourceImage) -> None:
    engine = Engine()
    engine.load_image = lambda chunks: [{"stream": "Loaded"}]  # type: ignore[method-assign,assignment,misc]
    with pytest.raises(EngineError, match="does not show it"):
        load(engine, image)


def test_a_name_that_holds_another_image_is_given_to_this_one(image: SourceImage, tmp_path: Path) -> None:
    engine = Engine()
    load(engine, tiny_image(tmp_path, "other"), "tiny:1")
    assert load(engine, image, "tiny:1") == str(image.image_id)


def test_the_id_of_another_kind_of_store_is_returned_for_the_same_image(image: SourceImage) -> None:
    engine, config = Engine(), json.loads(image.config)
    found = {
        "Id": "sha256:" + "9" * 64,
        "RootFS": {"Layers": config["rootfs"]["diff_ids"]},
        "Config": {**config["config"], "Hostname": "", "Env": None},
    }
    engine.by_name["tiny:1"] = found
    assert find_loaded(engine, image, ("gone", "tiny:1")) == found["Id"]  # type: ignore[arg-type]
    for change in ({"Config": {**config["config"], "Labels": {"a": "c"}}}, {"RootFS": {"Layers": ["sha256:1"]}}):
        engine.by_name["tiny:1"] = found | change
        assert find_loaded(engine, image, ("tiny:1",)) is None  # type: ignore[arg-type]


def test_a_missing_layer_is_fetched_from_where_the_base_is_before_a_byte_is_sent(
    image: SourceImage, tmp_path: Path
) -> None:
    descriptor = image.layers[0].descriptor
    assert descriptor is not None
    blob = tmp_path / "oci" / "blobs" / "sha256" / descriptor.digest.hex
    content, engine = blob.read_bytes(), Engine()
    blob.unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        load(engine, image)
    assert engine.sent == []

    def complete() -> None:
        blob.write_bytes(content)

    load(engine, image, complete=complete)
    assert layers_sent(engine, image) == 2
