"""Where the file behind a digest is: the simple index (PEP 503, PEP 691) of each named index."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from lj_image.config import Config, Source
from lj_image.errors import ArtifactError, LockError
from lj_image.lock.http import Address, Client, Refused, bare
from lj_image.lock.lock import LockedDistribution
from lj_image.lock.project import DEFAULT_INDEX
from lj_image.lock.uvtool import OfferedFile


def index_addresses(name: str, config: Config, environ: Mapping[str, str] = os.environ) -> tuple[Address, ...]:
    """Return the addresses of a named index, in the order in which uv asks them.

    `pypi` is whatever the user's tools use by default, unless the config names one. Raises LockError for a name
    that the config does not know.
    """
    source = config.values.indexes.get(name)
    if source is not None:
        return (source_address(source),)
    if name != DEFAULT_INDEX:
        raise LockError(f"the config has no address for the index {name!r}", hint=config_hint("indexes", name, config))
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    default = (environ.get(key) for key in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"))
    urls = (*extra, next((url for url in default if url), PYPI_SIMPLE_ENDPOINT))
    return tuple(Address.parse(_without_name(url)) for url in urls)


def archive_address(location: str, config: Config) -> Address:
    """Return the address under which the archives of a location lie; raises LockError for an unknown one."""
    source = config.values.archives.get(location)
    if source is None:
        raise LockError(
            f"the config has no address for the archives of {location!r}",
            hint=config_hint("archives", location, config),
        )
    return source_address(source)


def source_address(source: Source) -> Address:
    """Return an address of the config with its password."""
    return Address(source.url, source.username, source.password() if source.username else None)


def config_hint(section: str, name: str, config: Config) -> str:
    """Return what to add to the config, ready to be copied."""
    where = config.file or "your config.yaml (or the file that LJ_IMAGE_CONFIG names)"
    return f"add to {where}:\n{section}:\n  {name}:\n    url: https://…\n    username: …\n    password_env: …"


class SimpleIndexes:
    """The named indexes of a config; each page is read once. Safe to use from several threads."""

    def __init__(self, config: Config, client: Client) -> None:
        self._config = config
        self._client = client
        self._guard = threading.Lock()
        self._pages: dict[tuple[str, str], tuple[OfferedFile, ...]] = {}

    def find(self, item: LockedDistribution) -> tuple[str, Address]:
        """Return where a locked file can be loaded from; raises ArtifactError when its index has it no more."""
        other = False
        for address in index_addresses(item.index, self._config):
            for offered in self.files(item.name, item.index, address):
                if offered.sha256 == item.artifact.sha256:
                    return offered.url, address
                if offered.file == item.artifact.file:
                    if offered.sha256 is None:
                        return offered.url, address
                    other = True
        raise _missing(item, other)

    def files(self, name: str, index: str, address: Address) -> tuple[OfferedFile, ...]:
        """Return all files that one address offers under a name; none when it does not know the name."""
        key = (address.url, name)
        with self._guard:
            known = self._pages.get(key)
        if known is None:
            known = self._load(name, index, address)
            with self._guard:
                self._pages[key] = known
        return known

    def _load(self, name: str, index: str, address: Address) -> tuple[OfferedFile, ...]:
        import httpx
        from pypi_simple import ACCEPT_JSON_PREFERRED

        url = f"{address.url.rstrip('/')}/{name}/"
        try:
            response = self._client.page(url, address, ACCEPT_JSON_PREFERRED)
        except Refused as refusal:
            if refusal.status == 404:
                return ()
            raise refused(refusal, f"the index {index!r}", "indexes", index, self._config) from None
        except httpx.HTTPError as error:
            raise ArtifactError(
                f"the index {index!r} cannot be reached: {type(error).__name__}: {error}",
                hint=f"asked {bare(url)}; files that are in the cache already need no index",
            ) from None
        return _parse(name, response.text, response.headers.get("Content-Type", ""), str(response.url))


def refused(refusal: Refused, what: str, section: str, name: str, config: Config) -> ArtifactError:
    """Translate a server's refusal."""
    known = name in getattr(config.values, section)
    if refusal.status in (401, 403):
        return ArtifactError(
            f"{what} refuses us: {refusal}",
            hint=f"check user and password of `{section}.{name}`" if known else config_hint(section, name, config),
        )
    return ArtifactError(f"{what} does not answer: {refusal}", hint="try again later; what is complete is kept")


def _missing(item: LockedDistribution, other_bytes: bool) -> ArtifactError:
    what = f"{item.artifact.file} is not on the index {item.index!r}"
    if other_bytes:
        what = f"the index {item.index!r} offers other bytes as {item.artifact.file} than were locked"
    return ArtifactError(
        what,
        hint=f"sha256 {item.artifact.sha256}; a copy in the cache would serve, else lock the release again",
    )


def _parse(name: str, text: str, content_type: str, url: str) -> tuple[OfferedFile, ...]:
    import json

    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    try:
        if "json" in content_type:
            page = ProjectPage.from_json_data(json.loads(text), base_url=url)
        else:
            page = ProjectPage.from_html(name, text, base_url=url)
    except (ValueError, KeyError, UnsupportedRepoVersionError) as error:
        raise ArtifactError(f"the index page of {name} cannot be read: {error}", hint=f"asked {bare(url)}") from None
    return tuple(
        OfferedFile(
            item.filename,
            item.url.partition("#")[0],
            item.size,
            item.digests.get("sha256"),
            item.is_yanked,
            item.requires_python,
            bool(item.has_metadata),
        )
        for item in page.packages
    )


def _without_name(index: str) -> str:
    """Drop the name of `name=url`, as UV_INDEX may hold it."""
    name, equals, url = index.partition("=")
    return url if equals and "/" not in name else index
