"""Where files come from: the indexes and archive servers of the config, and whether they answer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from lj_image.config import Config
from lj_image.doctor.finding import Finding, ok, problem
from lj_image.lock.http import Address, bare
from lj_image.lock.index import archive_address, index_addresses
from lj_image.lock.project import DEFAULT_INDEX
from lj_image.lock.reach import Reach, reach

ASKED_FOR = "pip"
"""A project that most indexes have; one that has not answers 404, and an index's front page may have megabytes."""


def names(config: Config) -> tuple[str, ...]:
    """Return the indexes there are: the default one, and those of the config."""
    return tuple(dict.fromkeys((DEFAULT_INDEX, *config.values.indexes)))


def index(name: str, config: Config, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Ask every address of an index; raises LjImageError when its password is not where the config says."""
    for address in index_addresses(name, config, environ):
        url = address.url.rstrip("/")
        page = url if url.startswith("file:") else f"{url}/{ASKED_FOR}/"
        yield _judged(f"index {name}", f"indexes.{name}", address, reach(page, address, environ))


def archives(name: str, config: Config, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Ask the server of a location; what it says to a folder's name matters little, as long as it speaks to us."""
    address = archive_address(name, config)
    url = address.url if address.url.startswith("file:") else f"{address.url.rstrip('/')}/"
    yield _judged(f"archives {name}", f"archives.{name}", address, reach(url, address, environ))


def _judged(check: str, section: str, address: Address, answer: Reach) -> Finding:
    shown = bare(address.url)
    if answer.status is None:
        return problem(check, f"{shown} is not reached: {answer.failure}", "check network, proxy and certificates")
    if answer.status in (401, 403) and not (answer.status == 403 and check.startswith("archives")):
        return problem(check, f"{shown} refuses us: {answer.status}", f"check user and password of `{section}`")
    if answer.status >= 500 or (answer.status == 404 and address.url.startswith("file:")):
        return problem(check, f"{shown} answers {answer.status}", f"check the address of `{section}`, or try later")
    return ok(check, f"{shown} answers")
