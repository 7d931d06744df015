"""Where an assembled image goes from the cache: a folder, a file, an engine; named as other tools name these places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lj_image.errors import BuildError, UsageError
from lj_image.oci.archive import archive, index_archive
from lj_image.oci.copying import copy_index_into, copy_into
from lj_image.oci.layout import Layout
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.whole import appearing

Transport = Literal["oci", "oci-archive", "docker-archive", "engine"]

_KNOWN: Final = "oci:FOLDER, oci-archive:FILE, docker-archive:FILE, engine"


@dataclass(frozen=True, slots=True)
class Output:
    """One place for an image; the names of the transports are those of containers-transports(5)."""

    transport: Transport
    path: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Output:
        """Read `oci:FOLDER`, `oci-archive:FILE`, `docker-archive:FILE` or `engine`; raises UsageError."""
        name, colon, path = text.partition(":")
        match name:
            case "engine" if not colon:
                return cls("engine")
            case "oci" | "oci-archive" | "docker-archive" if path:
                return cls(name, Path(path).expanduser())
        raise UsageError(f"--output {text!r} names no place for an image", hint=f"known: {_KNOWN}")

    def __str__(self) -> str:
        return self.transport if self.path is None else f"{self.transport}:{self.path}"


def require_possible(outputs: Sequence[Output], platforms: int) -> None:
    """Raise UsageError for an output that cannot hold what is built, before anything is."""
    for output in outputs:
        if platforms > 1 and output.transport in ("docker-archive", "engine"):
            raise UsageError(
                f"--output {output} holds one platform, and {platforms} are built",
                hint="write all of them to oci:FOLDER or oci-archive:FILE, or build one platform at a time",
            )
        path = output.path
        if path is not None and output.transport != "oci" and path.is_dir():
            raise UsageError(f"--output {output}: {path} is a folder", hint="name a file")
        if path is not None and output.transport == "oci" and path.exists() and not path.is_dir():
            raise UsageError(f"--output {output}: {path} is a file", hint="name a folder, or write to oci-archive:FILE")


def write(output: Output, images: Sequence[SourceImage], reference: Reference) -> None:
    """Write an image, or one for each platform, to a folder or a file; a file appears by rename.

    Raises ArtifactError, BuildError where the place cannot be written to.
    """
    assert output.path is not None
    try:
        match output.transport:
            case "oci":
                _write_layout(output.path, images, reference)
            case "oci-archive":
                many = index_archive(images, [reference]) if len(images) > 1 else archive(images[0], [reference], "oci")
                _write_file(output.path, many)
            case _:
                _write_file(output.path, archive(images[0], [reference], "docker"))
    except OSError as error:
        raise BuildError(f"{output} cannot be written: {error.strerror or error}") from None


def _write_layout(folder: Path, images: Sequence[SourceImage], reference: Reference) -> None:
    layout = Layout.create(folder)
    name = reference.tag or str(reference)
    if len(images) > 1:
        copy_index_into(layout, images, name)
    else:
        copy_into(layout, images[0], name)


def _write_file(path: Path, blocks: Iterator[bytes]) -> None:
    with appearing(path, mode=0o644) as file:
        for block in blocks:
            file.write(block)
