"""All that is looked at, in the order in which it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lj_image.catalog.catalog import Catalog, find_catalog
from lj_image.config import Config, ConfigFile, default_cache_dir, load_config
from lj_image.doctor import indexes, machine, registries
from lj_image.doctor.catalog import catalog
from lj_image.doctor.engine import engine
from lj_image.doctor.examine import Check, examine
from lj_image.doctor.finding import Finding, problem
from lj_image.doctor.settings import settings
from lj_image.errors import LjImageError, UsageError


def checkup(
    environ: Mapping[str, str], start: Path, images_dir: str | None = None, regions: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Look at the machine, the config and the catalog at or above `start`.

    Raises UsageError for a region that the catalog does not have; everything else that is wrong is a finding.
    """
    config, config_error = _config(environ)
    found, catalog_error = _catalog(start, images_dir)
    checks: dict[str, Check] = {"engine": engine, "cache": partial(machine.cache, config)}
    checks["config"] = partial(settings, config, environ) if config_error is None else partial(_fault, config_error)
    checks["catalog"] = partial(catalog, found) if found else partial(_fault, catalog_error)
    checks |= {
        "uv": machine.uv,
        "git": machine.git,
        "proxy": partial(machine.proxies, environ),
        "certificates": partial(machine.certificates, config, environ),
    }
    checks |= {f"index {name}": partial(indexes.index, name, config, environ) for name in indexes.names(config)}
    checks |= {f"archives {name}": partial(indexes.archives, name, config, environ) for name in config.values.archives}
    places = _places(found, config, regions)
    checks |= {f"registry {place.host}": partial(registries.registry, place, environ) for place in places}
    return examine(checks)


def _config(environ: Mapping[str, str]) -> tuple[Config, LjImageError | None]:
    """Return the config, or, for the other checks to go on, an empty one and what is wrong."""
    try:
        return load_config(environ), None
    except LjImageError as error:
        return Config(None, ConfigFile(), default_cache_dir(environ)), error
    except OSError as error:
        return Config(None, ConfigFile(), default_cache_dir(environ)), LjImageError(f"the config: {error}")


def _catalog(start: Path, images_dir: str | None) -> tuple[Catalog | None, LjImageError | None]:
    try:
        return find_catalog(start, images_dir), None
    except LjImageError as error:
        return None, error


def _places(found: Catalog | None, config: Config, regions: Sequence[str]) -> tuple[registries.Place, ...]:
    if found is None:
        return ()
    try:
        return registries.places(found, config, regions)
    except UsageError:
        raise
    except LjImageError:  # the check of the catalog says what is wrong with it
        return ()


def _fault(error: LjImageError | None) -> Iterator[Finding]:
    if error is not None:
        raise error
    yield problem("catalog", "not found")
