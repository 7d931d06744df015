"""The `Link` header by which a registry says where an answer goes on (RFC 8288)."""

from __future__ import annotations

import re
from typing import Final

_NEXT: Final = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?', re.IGNORECASE)


def following(header: str) -> str | None:
    """Return the address of the next page, as the registry wrote it; None after the last one."""
    found = _NEXT.search(header)
    return found[1] if found else None
