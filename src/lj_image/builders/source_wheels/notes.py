"""Which wheel was built from which source: every builder looks here first, so that all of them install the same bytes.

<cache>/wheels/<hex>.json   one wheel, and the source, base and environment that it was built from
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import ArtifactStore
from lj_image.whole import write_whole

FORMAT: Final = 2
"""Part of a note's name: raised when wheels are built, or written, in another way than before."""
Where = Literal["a container of the base", "this machine"]


@dataclass(frozen=True, slots=True)
class SourceBuild:
    """A wheel that is wanted, with all that decides what is in it."""

    item: LockedDistribution
    base: str
    """What it is built for: the chain id of the base's layers, which is the same in every engine and without one."""
    env: Mapping[str, str] = field(default_factory=dict)

    def note(self, store: ArtifactStore) -> Path:
        """Return where it is noted, or would be."""
        parts = json.dumps([FORMAT, self.item.artifact.sha256, self.base, sorted(self.env.items())])
        return store.root.parent / "wheels" / f"{hashlib.sha256(parts.encode()).hexdigest()}.json"


def chain_id(diff_ids: Iterable[str]) -> str:
    """Return what names layers on top of each other, however they are compressed; of no layers, nothing.

    Format: https://github.com/opencontainers/image-spec/blob/main/config.md#layer-chainid
    """
    chain = ""
    for diff_id in diff_ids:
        chain = f"sha256:{hashlib.sha256(f'{chain} {diff_id}'.encode()).hexdigest()}" if chain else diff_id
    return chain


def built_once(wanted: SourceBuild, store: ArtifactStore, make: Callable[[], Artifact], *, where: Where) -> Artifact:
    """Return the wheel that is noted, whoever built it; else what `make` gives, which is noted.

    Others who want the same wheel meanwhile wait for it.
    """
    note = wanted.note(store)
    if (known := _known(note, store)) is not None:
        return known
    store.prepare()
    with store.writing(note.stem):
        if (known := _known(note, store)) is not None:
            return known
        wheel = make()
        _remember(note, wheel, wanted, where)
        return wheel


def require_named(file: str, item: LockedDistribution) -> None:
    """Raise BuildError unless a wheel's name says that it is what was locked."""
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise BuildError(f"{item.artifact.file} gave a wheel with an impossible name: {error}") from None
    if (canonicalize_name(name), version) != (item.name, Version(item.version)):
        raise BuildError(f"{item.artifact.file} gave {file}, not {item.name} {item.version}")


def is_pure(file: str) -> bool:
    """Say whether a wheel's name promises that it holds nothing compiled, so that it is the same on any machine."""
    tags = parse_wheel_filename(file)[3]
    return all((tag.abi, tag.platform) == ("none", "any") for tag in tags)


def _known(note: Path, store: ArtifactStore) -> Artifact | None:
    try:
        facts = json.loads(note.read_text())
        wheel = Artifact(str(facts["file"]), int(facts["size_bytes"]), str(facts["sha256"]), "wheel")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return wheel if store.has(wheel) else None


def _remember(note: Path, wheel: Artifact, wanted: SourceBuild, where: Where) -> None:
    source = wanted.item.artifact
    facts = {
        "file": wheel.file,
        "size_bytes": wheel.size_bytes,
        "sha256": wheel.sha256,
        "source": {"file": source.file, "sha256": source.sha256},
        "base": wanted.base,
        "env": dict(sorted(wanted.env.items())),
        "built_in": where,
    }
    write_whole(note, json.dumps(facts, indent=2) + "\n")
