"""Names of distributions."""

from __future__ import annotations

import re


def normalised(name: str) -> str:
    """Return the normalised name of a distribution (PEP 503, "Normalized Names")."""
    return re.sub(r"[-_.]+", "-", name).lower()
