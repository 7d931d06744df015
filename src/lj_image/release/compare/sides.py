"""What a person names -> one side of a comparison: an image of the engine, an archive, or what a release built last."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lj_image.errors import UsageError
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader
from lj_image.oci.tars import NotATarError, walk
from lj_image.release.compare.archives import archive_side, cached_side
from lj_image.release.compare.compare import Comparison, Side, compare
from lj_image.release.compare.memory import TreeMemory
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import LayerTree
from lj_image.release.diff.sides import named

if TYPE_CHECKING:
    import docker

    from lj_image.release.record import Built

_FORMS: Final = "an image of the engine (name:tag or sha256:…), the path of an archive, or a release that was built"
_BLOBS: Final = "blobs/sha256/"
ASSEMBLED: Final = "oci"
"""The folder of the cache that is the layout of what was assembled without an engine; see builders/oci/layer_cache."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What comparing stands on; nothing of it is touched before it is needed."""

    cache_dir: Callable[[], Path]
    built: Callable[[str], Built]
    """From a release's name to what was built of it last."""
    connect: Callable[[], docker.APIClient]
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to compare."""

    platform: str | None = None
    ignore: tuple[str, ...] = ()
    fresh: bool = False
    """Whether every layer is read, also those that are remembered or that both have."""


def compare_named(before: str, after: str, ground: Ground, wanted: Wanted) -> Comparison:
    """Compare two images as a person names them.

    Raises UsageError for what is nowhere or not of the platform, ArtifactError for a damaged archive, EngineError where
    an engine is needed and does not answer.
    """
    one, other = (_side(text, ground, wanted.platform) for text in (before, after))
    memory = None if wanted.fresh else TreeMemory(ground.cache_dir())
    return compare(one, other, memory, ignore=wanted.ignore)


def _side(text: str, ground: Ground, platform: str | None) -> Side:
    item = named(text)
    match item.kind:
        case "archive":
            path = Path(item.name).expanduser()
            if not path.exists():
                raise UsageError(f"no file {item.name}", hint=f"name {_FORMS}")
            return archive_side(path, platform)
        case "image":
            return engine_side(ground.connect(), item.name, platform, name=f"image {text}", say=ground.say)
        case "release":
            if item.revision is not None:
                raise UsageError(f"{text} is a release at a revision, not an image", hint=f"name {_FORMS}")
            return _release_side(item.name, ground, platform)


def _release_side(release: str, ground: Ground, platform: str | None) -> Side:
    """Open what was built last of a release, in the engine or without one."""
    built, name = ground.built(release), f"release {release}"
    if built.manifest is not None:
        return cached_side(ground.cache_dir() / ASSEMBLED, built.manifest, name)
    return engine_side(ground.connect(), built.image_id, platform, name=name, say=ground.say)


@dataclass(frozen=True, slots=True)
class EngineSide:
    """An image of an engine."""

    name: str
    config: Mapping[str, Any]
    diff_ids: tuple[str, ...]
    image_id: str
    api: docker.APIClient
    say: Callable[[str], None]

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted layers, and the unknown ones, since an engine saves nothing less than the whole image."""
        from lj_image.verify.engine import engine_errors, patient

        wanted |= unknown
        self.say(f"reading {len(wanted)} of {len(self.diff_ids)} layers of {self.name}")
        with engine_errors(f"reading the layers of {self.image_id}"), patient(self.api):
            chunks = self.api.get_image(self.image_id, chunk_size=BLOCK_BYTES)
            yield from scan_saved(chunks, wanted, unwanted=frozenset(self.diff_ids) - wanted)


def engine_side(
    api: docker.APIClient, reference: str, platform: str | None, *, name: str, say: Callable[[str], None]
) -> EngineSide:
    """Ask an engine for an image; raises UsageError where it has none by that name, or for that platform."""
    from lj_image.builders.docker.engine import find_image

    found = find_image(api, reference)
    if found is None:
        raise UsageError(f"the engine has no image {reference}", hint=f"pull or build it, or name {_FORMS}")
    own = f"{found['Os']}/{found['Architecture']}"
    if platform is not None and platform.split("/")[:2] != own.split("/"):
        raise UsageError(f"the engine has {reference} for {own} alone, not for {platform}", hint="leave --platform out")
    config = {
        "os": found["Os"],
        "architecture": found["Architecture"],
        "variant": found.get("Variant"),
        "config": found.get("Config"),
    }
    return EngineSide(name, config, tuple(found["RootFS"].get("Layers") or ()), found["Id"], api, say)


def scan_saved(
    chunks: Iterable[bytes], wanted: frozenset[str], *, unwanted: frozenset[str] = frozenset()
) -> Iterator[tuple[str, LayerTree]]:
    """Yield diff id and tree of each wanted layer in a stream of `docker save`, in either of its forms.

    Engines up to 24 name a layer's entry by an id of its own, newer ones by the digest of its bytes: those that are
    `unwanted` are passed over where their names give them away.
    """
    missing = set(wanted)
    passed = frozenset(f"{_BLOBS}{diff_id.removeprefix('sha256:')}" for diff_id in unwanted)
    for entry in walk(ChunkReader(chunks)):
        if not entry.is_file or not entry.path.startswith(_BLOBS) | entry.path.endswith("/layer.tar"):
            continue
        if entry.path in passed:
            continue
        try:
            diff_id, tree = scan_layer(entry.content)
        except (NotATarError, zlib.error):  # a manifest or a configuration
            continue
        if diff_id in missing:
            missing.remove(diff_id)
            yield diff_id, tree
        if not missing:
            return
