"""Recipes of small layers, made from wheels by hand."""

from __future__ import annotations

from pathlib import Path

from lj_image.builders.oci.compose import Ground
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.plan import PipLayer
from samples.wheels import SCHEME, Member, wheel


def recipe_of(
    folder: Path, name: str, content: bytes = b"", *, ground: Ground | None = None, path: str = "", title: str = ""
) -> LayerRecipe:
    """Return the recipe of a layer with a wheel of one module."""
    folder.mkdir(exist_ok=True)
    made = wheel(folder, Member(path or f"{name}/__init__.py", content), info=f"{name}-1.0.dist-info")
    artifact = Artifact(made.file, made.path.stat().st_size, made.sha256, "wheel")
    locked = LockedDistribution(name, "1.0", artifact, "pypi", name)
    layer = PipLayer(title or name, (name,), (locked,), "for a test")
    return LayerRecipe(layer, SCHEME, ground or Ground(), (made,))
