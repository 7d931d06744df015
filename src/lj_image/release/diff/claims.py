"""What an image says it is: its labels name the release whose components it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.catalog.release import Component, PipSource, Release
from lj_image.catalog.versions import keeps_promise
from lj_image.errors import LjImageError, LockError
from lj_image.lock.lockfile import lock_path, read_lock
from lj_image.release.diff.contents import Distribution, Part
from lj_image.release.diff.releases import parts_of
from lj_image.release.record import Records

if TYPE_CHECKING:
    from lj_image.release.diff.sides import Resolver

_PREFIX = "io.lj-image."


@dataclass(frozen=True, slots=True)
class Claim:
    """What is believed of an image's labels."""

    image: str | None = None
    variant: str | None = None
    components: Mapping[str, Part] | None = None
    """None for an image that names no release of this catalog."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """Holds labels against the catalog."""

    resolve: Resolver
    cache_dir: Path

    def of(self, labels: Mapping[str, str], image_id: str, inside: Mapping[str, Distribution]) -> Claim:
        """Return the components that an image claims, at the versions that were found inside where that is known."""
        said = {name.removeprefix(_PREFIX): value for name, value in labels.items() if name.startswith(_PREFIX)}
        image, name, variant = said.get("image"), said.get("release"), said.get("variant")
        if not (image and name and variant):
            return Claim(notes=("not built by lj-image, so its distributions alone are compared, not its components",))
        try:
            release = self.resolve(
                f"{image}/{name}",
                variant,
                platform=None,
                only_configured=False,
                base_known=False,
                overridden=_set(said),
            )
            found = self._found(release, image_id)
        except LjImageError as error:
            return Claim(image, variant, notes=(f"says it is {image} {name}, {variant}: {error.message}",))
        parts = dict(_inside(release, found, inside, only=frozenset(filter(None, said.get("partial", "").split(",")))))
        return Claim(image, variant, parts, tuple(_lock_notes(release, said.get("lock"))))

    def _found(self, release: Release, image_id: str) -> Mapping[str, str]:
        """Return component -> version as the proof of this very image found them; nothing for an image not proven."""
        for record in Records(self.cache_dir, release.image).all():
            if record.verified is not None and record.verified.image_id == image_id:
                return record.verified.found
        return {}


def _set(said: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that were tried with --set."""
    return dict(pair.split("=", 1) for pair in said.get("set", "").split(",") if "=" in pair)


def _inside(
    release: Release, found: Mapping[str, str], inside: Mapping[str, Distribution], only: frozenset[str]
) -> Iterator[tuple[str, Part]]:
    parts = parts_of(release)
    for component in release.components:
        part = parts[component.id]
        if not only or part.of_base or component.id in only:
            version = _seen(component, inside) or found.get(component.id)
            # A library may know less of its version than the release: 12.8 for 12.8.0.
            wrong = version is not None and not keeps_promise(part.version, version)
            yield component.id, replace(part, version=version) if wrong and version else part


def _seen(component: Component, inside: Mapping[str, Distribution]) -> str | None:
    """Return the version of the distribution that stands for a component."""
    if not isinstance(component.source, PipSource) or len(component.source.distributions) != 1:
        return None
    item = inside.get(component.source.distributions[0][0])
    return item.version if item else None


def _lock_notes(release: Release, lock: str | None) -> Iterator[str]:
    with suppress(LockError):
        if lock and read_lock(lock_path(release)).digest != lock:
            yield f"built from another lock than {release.key} has now"
