"""What the archive writer writes, loaded by a real engine, and what the engine saves, read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import APIError
from scratch import Scratch

from lj_image.oci.archive import Form, archive
from lj_image.oci.reference import Reference
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage
from lj_image.oci.validate import validate
from samples.images import gzipped_in_parts, image, layers_of


def load(engine: docker.APIClient, chunks: Iterator[bytes]) -> str:
    """Return all that the engine says while it loads."""
    said = list(engine.load_image(chunks))
    errors = [message["error"] for message in said if "error" in message]
    assert not errors, errors
    return "".join(message.get("stream", "") for message in said)


@pytest.mark.parametrize("form", ["both", "docker"])
def test_an_engine_loads_layers_in_gzip_as_they_are(
    form: Form, engine: docker.APIClient, scratch: Scratch, tmp_path: Path
) -> None:
    wanted = image(tmp_path, layers_of(scratch.name(form)), compress=gzipped_in_parts)
    name = Reference.parse(f"{scratch.name(form)}:1")
    assert name.familiar in load(engine, archive(wanted, (name,), form))
    found = engine.inspect_image(name.familiar)
    assert found["RootFS"]["Layers"] == [str(layer.diff_id) for layer in wanted.layers]
    assert found["Config"]["Env"] == ["A=b"]
    assert found["Created"].startswith("2025-02-28T00:00:00")
    assert name.familiar in found["RepoTags"]


def test_what_an_engine_saves_of_it_is_the_same_image(
    engine: docker.APIClient, scratch: Scratch, tmp_path: Path
) -> None:
    wanted = image(tmp_path / "blobs", layers_of(scratch.name("save")))
    name = Reference.parse(f"{scratch.name('save')}:1")
    load(engine, archive(wanted, (name,)))
    saved = tmp_path / "saved.tar"
    with saved.open("wb") as file:
        file.writelines(engine.get_image(name.familiar))
    found = open_image(saved)
    validate(found)
    assert [layer.diff_id for layer in found.layers] == [layer.diff_id for layer in wanted.layers]
    assert found.settings.env == wanted.settings.env
    assert isinstance(found, SourceImage)


def test_layers_that_an_engine_has_may_be_left_out(engine: docker.APIClient, scratch: Scratch, tmp_path: Path) -> None:
    first = image(tmp_path, layers_of(scratch.name("left-out")))
    load(engine, archive(first, (Reference.parse(f"{scratch.name('first')}:1"),)))
    second = image(tmp_path, layers_of(scratch.name("left-out")), cmd=("/bin/false",))
    name = Reference.parse(f"{scratch.name('second')}:1")
    try:
        load(engine, archive(second, (name,), left_out={0, 1}))
    except (AssertionError, APIError) as error:
        pytest.skip(f"this engine keeps blobs, so it wants all of them: {error}")
    assert engine.inspect_image(name.familiar)["Config"]["Cmd"] == ["/bin/false"]
