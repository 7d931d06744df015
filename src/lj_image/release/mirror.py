"""A release crosses an air gap: from the cache or a registry into an OCI layout, and from there into registries.

The layout says of itself what it is, so that the other side needs no record; its digests are held against its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from lj_image.catalog.release import Release
from lj_image.errors import PublishError, UsageError
from lj_image.oci.content import Content
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.exporting import Exported, export_folder, export_tar
from lj_image.oci.layout import REFERENCE
from lj_image.oci.layout_content import LayoutEntry, entries_in
from lj_image.oci.saved import CONTAINERD_NAME
from lj_image.release.record import Record
from lj_image.suggest import did_you_mean

Proof = Literal["passed", "none", "unknown"]
_PREFIX: Final = "io.lj-image."
"""Of the labels of an image, and of these annotations."""
_COMPRESSED: Final = (".gz", ".tgz", ".zst", ".xz", ".bz2")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Passport:
    """What an exported layout says of a release in it."""

    image: str
    release: str
    variant: str
    tag: str
    repository: str
    """Namespace and image name, below any registry."""
    proof: Proof
    """Whether the image was verified where it was exported; `unknown` where no record said so."""

    def annotations(self) -> dict[str, str]:
        """Return the annotations of the layout's entry."""
        own = {
            "image": self.image,
            "release": self.release,
            "variant": self.variant,
            "tag": self.tag,
            "repository": self.repository,
            "verified": self.proof,
        }
        return {f"{_PREFIX}{key}": value for key, value in own.items()}

    @classmethod
    def read(cls, annotations: Mapping[str, str]) -> Self | None:
        """Read an entry's annotations; None where another tool wrote it, or not all of them are there."""
        keys = ("image", "release", "variant", "tag", "repository")
        image, release, variant, tag, repository = (annotations.get(f"{_PREFIX}{key}", "") for key in keys)
        if not all((image, release, variant, tag, repository)):
            return None
        return cls(image, release, variant, tag, repository, _proof(annotations.get(f"{_PREFIX}verified")))


def _proof(said: str | None) -> Proof:
    match said:
        case "passed" | "none":
            return said
    return "unknown"


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is inside a layout, under one digest."""

    entry: LayoutEntry
    passport: Passport | None

    @property
    def descriptor(self) -> Descriptor:
        """Of its manifest or index."""
        return self.entry.descriptor

    def answers_to(self, name: str) -> bool:
        """Say whether a person may mean it by a name: a release, a tag, a reference, or its digest."""
        return name in self.known_as

    @property
    def known_as(self) -> tuple[str, ...]:
        """All that it may be called."""
        own = self.passport
        said = (own.release, f"{own.image}/{own.release}", own.tag) if own else ()
        return tuple(dict.fromkeys((*said, *self.entry.names, str(self.descriptor.digest))))


def passport_of(release: Release, tag: str, proof: Proof) -> Passport:
    """Return what an exported layout says of a release."""
    return Passport(release.image, release.name, release.variant, tag, release.endpoints.repository, proof)


def export(content: Content, passport: Passport, reference: str, path: Path, watch: Callable[[int], None]) -> Exported:
    """Write content with its passport: a path that ends with .tar becomes one file, any other a folder.

    `reference` is what an engine that loads it is to call it. The same content gives the same bytes. Raises UsageError,
    ArtifactError where the content is damaged, LjImageError where the place cannot be written to.
    """
    names = ({**passport.annotations(), REFERENCE: passport.tag, CONTAINERD_NAME: reference},)
    if is_tar(path):
        return export_tar(content, path, names, watch)
    return export_folder(content, path, names, watch)


def is_tar(path: Path) -> bool:
    """Say whether a path is to be one file; raises UsageError for one that says it should be compressed."""
    if path.name.endswith(_COMPRESSED):
        raise UsageError(
            f"{path} would be compressed as a whole, which a reader has to undo first",
            hint="write FILE.tar: the layers in it are compressed already",
        )
    if path.suffix == ".tar" and path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file, or a folder without .tar")
    if path.suffix != ".tar" and path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file", hint="name FILE.tar, or a folder")
    return path.suffix == ".tar"


def require_exportable(record: Record | None, key: str, *, verify: bool) -> Proof:
    """Return the proof of a record's image; raises PublishError where it is not the release, or has none."""
    built = record.built if record else None
    if record is None or built is None:
        raise PublishError(
            f"{key} has not been built on this machine", hint="take it from a registry that has it: --from PLACE"
        )
    if built.partial or built.overridden:
        how = "partial" if built.partial else "tried with --set"
        raise PublishError(f"the image of {key} was {how}", hint=f"build it: lj-image build (for {key})")
    if record.proves(built.image_id):
        return "passed"
    if verify:
        raise PublishError(
            f"the image of {key} is not verified",
            hint="run: lj-image verify (export --no-verify lets it through, and the file will say so)",
        )
    return "none"


def parcels_in(path: Path) -> tuple[Parcel, ...]:
    """Return what a layout holds, without reading a blob; raises UsageError, ArtifactError."""
    return tuple(Parcel(entry, Passport.read(entry.descriptor.annotations)) for entry in entries_in(path))


def parcel_in(path: Path, name: str | None) -> Parcel:
    """Return what is meant by a name, or the only thing in a layout; raises UsageError."""
    every = parcels_in(path)
    found = [item for item in every if name is None or item.answers_to(name)]
    if len(found) == 1:
        return found[0]
    shown = "; ".join(item.known_as[0] for item in every) or "nothing"
    if found:
        raise UsageError(f"{path} holds {shown}", hint="name one of them: import FILE NAME")
    known = [name for item in every for name in item.known_as]
    raise UsageError(f"{path} has nothing called {name!r}", hint=did_you_mean(str(name), known, noun="names"))
