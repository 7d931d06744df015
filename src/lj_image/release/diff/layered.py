"""Layers laid over each other, and what an image says of itself -> Contents; for engines and archives alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lj_image.release.diff.claims import Claims
from lj_image.release.diff.contents import Contents, Distribution, FileFact, LayerFact, Listing, Measure
from lj_image.release.diff.scan import LayerFiles, Stated, merged

_LONGEST_TITLE: Final = 60
_OF_THE_DISTRIBUTION: Final = "usr/lib/python3/dist-packages"
"""Where Debian's packages install to; Python looks there last."""


@dataclass(frozen=True, slots=True)
class SelfDescription:
    """What an image says of itself, wherever it lies."""

    name: str
    short: str
    kind: Literal["image", "archive"]
    image_id: str
    """The digest of its configuration."""
    platform: str
    labels: Mapping[str, str]
    measure: Measure
    """What the sizes of its layers count."""


def contents_of_layers(
    said: SelfDescription, layers: Iterable[LayerFiles], facts: Iterable[LayerFact], claims: Claims
) -> Contents:
    """Lay an image's layers over each other, and believe its labels as far as the catalog bears them out."""
    files, stated = merged(layers)
    by_name = _by_name(stated)
    distributions = {name: Distribution(name, item.version, pinned=False) for name, item in by_name.items()}
    claim = claims.of(said.labels, said.image_id, distributions)
    return Contents(
        name=said.name,
        short=said.short,
        kind=said.kind,
        platform=said.platform,
        details=ImageDetails(files, {name: item.licence for name, item in by_name.items()}),
        image=claim.image,
        variant=claim.variant,
        components=claim.components,
        distributions=distributions,
        layers=tuple(facts),
        measure=said.measure,
        notes=claim.notes,
    )


@dataclass(frozen=True, slots=True)
class ImageDetails:
    """What was read with the layers anyway."""

    found: Mapping[str, FileFact]
    stated_licences: Mapping[str, str]

    def licences(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return what the named distributions state."""
        return {name: self.stated_licences[name] for name in names if name in self.stated_licences}

    def unlisted(self, names: Iterable[str]) -> frozenset[str]:
        """Return the distributions whose files are not known: none."""
        return frozenset()

    def files(self, names: Iterable[str]) -> Listing:
        """Return every file, whoever it belongs to."""
        return Listing(self.found)

    def dockerfile(self) -> str | None:
        """Return None: an image does not keep what it was built from."""
        return None


def _by_name(stated: Mapping[str, Stated]) -> dict[str, Stated]:
    """Return the distributions by name; of two with one name, the one that Python finds first."""
    last_first = sorted(stated, key=lambda path: (not path.startswith(_OF_THE_DISTRIBUTION), path))
    return {stated[path].name: stated[path] for path in last_first}


def step_titles(created_by: Iterable[str], count: int) -> tuple[str, ...]:
    """Return a title for each of `count` layers: the step that made it, where there are as many steps as layers."""
    made = tuple(map(_step, created_by))
    return made if len(made) == count else tuple(f"layer {number}" for number in range(1, count + 1))


def _step(created_by: str) -> str:
    """Return the beginning of a step, in one line, without what engines add to it."""
    text = " ".join(created_by.removesuffix("# buildkit").split())
    text = text.removeprefix("/bin/sh -c ").removeprefix("#(nop) ").strip()
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"
