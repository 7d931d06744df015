"""An image in the engine -> Contents: its layers are read as the engine saves them, and remembered."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.builders.docker.engine import find_image, translated
from lj_image.errors import EngineError
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader
from lj_image.oci.tars import NotATarError, walk
from lj_image.release.diff.claims import Claims
from lj_image.release.diff.contents import Contents, LayerFact
from lj_image.release.diff.layered import SelfDescription, contents_of_layers, step_titles
from lj_image.release.diff.scan import LayerFiles, LayerMemory, scan_layer
from lj_image.verify.engine import engine_errors, patient

if TYPE_CHECKING:
    import docker


def contents_of_image(
    api: docker.APIClient, reference: str, cache_dir: Path, claims: Claims, *, say: Callable[[str], None]
) -> Contents | None:
    """Read an image of the engine; None when it has none by that name or id.

    Raises EngineError when the engine does not hand a layer out.
    """
    found = find_image(api, reference)
    if found is None:
        return None
    diff_ids = tuple(found["RootFS"].get("Layers") or ())
    layers = _layers(api, found["Id"], diff_ids, LayerMemory(cache_dir), say)
    said = SelfDescription(
        name=f"image {reference}",
        short=reference.removeprefix("sha256:")[:12] if reference.startswith("sha256:") else reference,
        kind="image",
        image_id=found["Id"],
        platform=f"{found['Os']}/{found['Architecture']}",
        labels=(found.get("Config") or {}).get("Labels") or {},
        measure="unpacked",
    )
    titles = step_titles(_steps(api, found["Id"]), len(diff_ids))
    facts = (LayerFact(layer.diff_id, title, layer.size_bytes) for layer, title in zip(layers, titles, strict=True))
    return contents_of_layers(said, layers, facts, claims)


def _layers(
    api: docker.APIClient,
    image_id: str,
    diff_ids: tuple[str, ...],
    memory: LayerMemory,
    say: Callable[[str], None],
) -> tuple[LayerFiles, ...]:
    known = {item: found for item in diff_ids if (found := memory.read(item)) is not None}
    missing = frozenset(diff_ids) - known.keys()
    if missing:
        say(f"reading {len(missing)} layers of {image_id[:19]}; they are remembered")
        with engine_errors(f"reading the layers of {image_id}"), patient(api):
            for layer in scan_saved(api.get_image(image_id, chunk_size=BLOCK_BYTES), missing):
                memory.write(layer)
                known[layer.diff_id] = layer
    if lost := [item for item in diff_ids if item not in known]:
        raise EngineError(
            f"the engine saved {image_id} without its layer {lost[0]}, or in a compression that lj-image does not read",
            hint="pull or build the image again with this engine",
        )
    return tuple(known[item] for item in diff_ids)


def scan_saved(chunks: Iterable[bytes], wanted: frozenset[str]) -> Iterator[LayerFiles]:
    """Yield each wanted layer in a stream of `docker save`, in either of its forms; see `verify.layers.scan_saved`."""
    done: set[str] = set()
    for entry in walk(ChunkReader(chunks)):
        if not entry.is_file or not (entry.path.startswith("blobs/sha256/") or entry.path.endswith("/layer.tar")):
            continue
        try:
            layer = scan_layer(entry.content)
        except (NotATarError, zlib.error):  # a manifest or a configuration
            continue
        if layer.diff_id in wanted - done:
            done.add(layer.diff_id)
            yield layer
        if done == wanted:
            return


def _steps(api: docker.APIClient, image_id: str) -> Iterator[str]:
    """Yield what made each layer that is not empty, from the lowest on."""
    with translated(f"reading the history of {image_id}"):
        history = api.history(image_id)  # type: ignore[no-untyped-call]
    yield from (item["CreatedBy"] for item in reversed(history) if item["Size"])
