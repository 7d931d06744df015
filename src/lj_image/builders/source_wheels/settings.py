"""What every build of a source is given: fixed circumstances, the indexes for its requirements, whom to trust."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit, urlunsplit

from lj_image.config import Config

if TYPE_CHECKING:
    from lj_image.lock.http import Address

SOURCE_DATE_EPOCH: Final = "315532800"
"""1980-01-01, the first moment that a zip can hold: the same source gives the same wheel at any time."""
FIXED: Final[Mapping[str, str]] = {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH, "PYTHONHASHSEED": "0"}
LAST_LINES: Final = 15
"""Of a failed build's output, as many are shown."""


def requirement_indexes(config: Config) -> tuple[Address, ...]:
    """Return the indexes that build requirements come from, the default one last."""
    from lj_image.lock.index import index_addresses  # late: the HTTP client is not needed for a wheel that is there

    return index_addresses("pypi", config)


def ca_bundle(config: Config) -> Path | None:
    """Return the file of the certificates to trust, None where the system's own will do."""
    named = config.values.build.ca_bundle
    candidates = (named, os.environ.get("SSL_CERT_FILE"), os.environ.get("REQUESTS_CA_BUNDLE"))
    paths = (Path(candidate).expanduser() for candidate in candidates if candidate)
    return next((path for path in paths if path.is_file()), None)


def with_password(address: Address) -> str:
    """Return an address that holds its password, for a file that nobody else may read; never for a command line."""
    if address.username is None:
        return address.url
    parts = urlsplit(address.url)
    user = f"{quote(address.username, safe='')}:{quote(address.password or '', safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))
