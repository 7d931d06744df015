"""A locked source distribution -> its wheel, without an engine; the assembler installs wheels only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.source_wheels.isolated import WAY_OUT, Isolation, build_isolated
from lj_image.builders.source_wheels.notes import SourceBuild, built_once, chain_id, is_pure, require_named
from lj_image.builders.source_wheels.storing import stored
from lj_image.catalog.release import BaseFacts
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import ArtifactStore

Say = Callable[[str], None]


def wheel_of_source(
    item: LockedDistribution,
    base: OciBase,
    facts: BaseFacts,
    store: ArtifactStore,
    config: Config,
    *,
    env: Mapping[str, str],
    say: Say,
) -> Artifact:
    """Return the wheel of a source distribution that is in the store, built for a base with `env`.

    One that any builder has noted for this source, base and environment is taken as it is; else it is built here,
    once. Raises BuildError, also for a wheel that holds compiled files: those depend on this machine's compiler and
    libraries, which are not the base's.
    """
    wanted = SourceBuild(item, chain_id(map(str, base.config.diff_ids)), env)

    def make() -> Artifact:
        say(
            f"building a wheel of {item.name} {item.version} from its source, once: "
            "its own build code runs on this machine, not in a container"
        )
        return _built(wanted, facts, store, config)

    return built_once(wanted, store, make, where="this machine")


def _built(wanted: SourceBuild, facts: BaseFacts, store: ArtifactStore, config: Config) -> Artifact:
    item = wanted.item
    source = store.require(item.artifact)
    with tempfile.TemporaryDirectory(prefix="lj-image-wheel-") as folder:
        where = Isolation(Path(folder), _minor(facts.python), config, wanted.env, _legacy_pins(facts))
        wheel = build_isolated(source, item, where)
        require_named(wheel.name, item)
        if not is_pure(wheel.name):
            raise BuildError(
                f"{item.name} {item.version} has compiled parts ({wheel.name}), "
                "and this machine's compiler and libraries are not the base's",
                hint=f"put a wheel of it into an index that the config names, and lock again\n{WAY_OUT}",
            )
        return stored(wheel, item, store)


def _legacy_pins(facts: BaseFacts) -> tuple[str, ...]:
    """Return what pip in a container of the base builds a source with that has no pyproject.toml: the base's own."""
    return tuple(f"{name}=={facts.packages[name]}" for name in ("setuptools", "wheel") if name in facts.packages)


def _minor(python: str) -> str:
    """Return 3.11 for 3.11.2."""
    return ".".join(python.split(".")[:2])
