"""The catalog on disk: which image families there are, and the files of each.

images/<image>/image.yaml, releases/<release>.yaml, bases/<facts>.yaml
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.errors import Location, ManifestError, UsageError
from lj_image.suggest import did_you_mean

if TYPE_CHECKING:  # late: `list` does without pydantic, and a release that was resolved before without YAML, too
    from lj_image.catalog.schema import BaseFile, BootstrapFile, ImageFile, ReleaseFile
    from lj_image.documents.nodes import Document


@dataclass(frozen=True)
class ReleaseEntry:
    """A release file and where its values stand."""

    file: ReleaseFile
    document: Document


@dataclass(frozen=True)
class Family:
    """One image family: its `image.yaml`, and its releases, read when asked for."""

    folder: Path
    file: ImageFile
    document: Document

    @property
    def name(self) -> str:
        """The family's name."""
        return self.file.image

    @cached_property
    def release_names(self) -> tuple[str, ...]:
        """Names of all releases, oldest first, taken from the file names."""
        return release_names(self.folder)

    def release(self, name: str) -> ReleaseEntry:
        """Read one release; raises UsageError for one that does not exist."""
        from lj_image.catalog.schema import ReleaseFile
        from lj_image.documents.models import read_model

        path = self.folder / "releases" / f"{name}.yaml"
        if name not in self.release_names:
            raise UsageError(
                f"{self.name} has no release {name!r}", hint=did_you_mean(name, self.release_names, noun="releases")
            )
        file, document = read_model(path, ReleaseFile, shown(path))
        if file.release != name:
            raise ManifestError(
                f"the file is named {path.name}, but its release is {file.release!r}",
                hint=f'write `release: "{name}"`, or rename the file',
                location=document.place_of(("release",)),
            )
        return ReleaseEntry(file, document)

    def chain(self, name: str) -> tuple[ReleaseEntry, ...]:
        """Return a release and those it inherits from, eldest first.

        Raises ManifestError for one that inherits from itself, or from nothing that the catalog has.
        """
        entries = [self.release(name)]
        while (parent := inherited_from(entries[0].file)) is not None:
            key = "inherits" if entries[0].file.inherits else "previous"
            place = entries[0].document.place_of((key,))
            if parent in (entry.file.release for entry in entries):
                raise ManifestError(
                    f"{name} inherits from itself, through {parent}",
                    hint=f"{key}: names the release that this file is a difference to",
                    location=place,
                )
            if parent not in self.release_names:
                raise ManifestError(
                    f"{key}: {parent!r} is no release of {self.name}",
                    hint=did_you_mean(parent, self.release_names, noun="releases")
                    + "\na release that came before and has no file: `previous:` names it, `inherits:` one that has",
                    location=place,
                )
            entries.insert(0, self.release(parent))
        return tuple(entries)

    def facts_path(self, name: str) -> Path:
        """Return where what is known of a base is written."""
        return self.folder / "bases" / f"{name}.yaml"

    def base_facts(self, name: str) -> tuple[BaseFile, Path]:
        """Read what is known of a base."""
        from lj_image.catalog.schema import BaseFile
        from lj_image.documents.models import read_model

        path = self.facts_path(name)
        platform = " --platform linux/arm64" if name.endswith("-arm64") else ""
        if not path.exists():
            raise ManifestError(
                f"nothing is known of the base {name}: {shown(path)} does not exist",
                hint=f"let lj-image ask the base itself: lj-image base RELEASE --variant VARIANT{platform}",
                location=Location(shown(path)),
            )
        file, _ = read_model(path, BaseFile, shown(path))
        return file, path


class Catalog:
    """All image families below one `images/` folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def _documents(self) -> dict[str, Document]:
        from lj_image.documents.nodes import read_document

        paths = sorted(self.root.glob("*/image.yaml"))
        return {path.parent.name: read_document(path, shown(path)) for path in paths}

    def document(self, name: str) -> Document:
        """Return the parsed, not yet validated, `image.yaml` of a folder."""
        return self._documents[name]

    @property
    def family_names(self) -> tuple[str, ...]:
        """Folders that hold a family of releases (and not a base of ours)."""
        return tuple(name for name, document in self._documents.items() if "bootstrap" not in document.data)

    def family(self, name: str) -> Family:
        """Read a family; raises UsageError for one that does not exist."""
        from lj_image.catalog.schema import ImageFile
        from lj_image.documents.models import validate

        if name not in self.family_names:
            raise UsageError(f"no image {name!r}", hint=did_you_mean(name, self.family_names, noun="images"))
        document = self._documents[name]
        file = validate(document, ImageFile)
        if file.image != name:
            raise ManifestError(
                f"the folder is named {name}, but its image is {file.image!r}",
                hint="rename one of the two",
                location=document.place_of(("image",)),
            )
        return Family(self.root / name, file, document)

    def bootstrap(self, name: str, asked_at: Location) -> BootstrapFile:
        """Read a base of ours."""
        from lj_image.catalog.schema import BootstrapFile
        from lj_image.documents.models import validate

        document = self._documents.get(name)
        if document is None or "bootstrap" not in document.data:
            known = [item for item, other in self._documents.items() if "bootstrap" in other.data]
            raise ManifestError(
                f"{name!r} is no base of ours", hint=did_you_mean(name, known, noun="bases"), location=asked_at
            )
        return validate(document, BootstrapFile)

    def families_with(self, release: str) -> tuple[str, ...]:
        """Return the names of the families that have a release of that name."""
        return tuple(name for name in self.family_names if release in release_names(self.root / name))

    def find(self, release: str) -> tuple[Family, str]:
        """Return the family and name of a release written as `25.02` or `training-nv-pytorch/25.02`."""
        family_name, slash, name = release.rpartition("/")
        if slash:
            return self.family(family_name), name
        having = self.families_with(name)
        if len(having) == 1:
            return self.family(having[0]), name
        if having:
            names = " or ".join(f"{family}/{name}" for family in having)
            raise UsageError(f"several images have a release {name}", hint=f"write {names}")
        known = [item for family in map(self.family, self.family_names) for item in family.release_names]
        raise UsageError(f"no release {release!r}", hint=did_you_mean(release, known, noun="releases"))


def inherited_from(file: ReleaseFile) -> str | None:
    """Return the release that a file is a difference to."""
    return file.inherits or file.previous


def release_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the releases in an image's folder, oldest first."""
    return tuple(sorted(path.stem for path in (folder / "releases").glob("*.yaml")))


def find_catalog(start: Path, named: str | None = None) -> Catalog:
    """Return the catalog at `named`, or in the nearest `images/` folder at or above `start`."""
    if named:
        root = Path(named)
        if not any(root.glob("*/image.yaml")):
            raise UsageError(f"{named} holds no */image.yaml", hint="name the folder that holds the image folders")
        return Catalog(root)
    for folder in (start, *start.parents):
        if any((folder / "images").glob("*/image.yaml")):
            return Catalog(folder / "images")
    raise UsageError(
        f"no images/ folder with an image.yaml in {start} or above",
        hint="go to your project's folder, or name it with --images",
    )


def shown(path: Path) -> str:
    """Return a path as the user would type it: relative where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
