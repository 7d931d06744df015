"""Fail unless pytest's reports tell of tests that ran: unit tests, those with an engine, and those of each project."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

PROJECTS = Path(__file__).parents[1].glob("images/*/*/pyproject.toml")
WANTED = ("unit", "integration", *sorted(f"image-{path.parent.name}" for path in PROJECTS))
"""Names of the reports."""


def main(files: list[str]) -> str | None:
    """Print how many ran; return what is wrong, if anything is."""
    ran = Counter(
        Path(file).stem
        for file in files
        for case in ElementTree.parse(file).iter("testcase")
        if case.find("skipped") is None
    )
    print("ran:", ", ".join(f"{ran[name]} of {name}" for name in WANTED))
    lacking = [name for name in WANTED if not ran[name]]
    return f"no test ran of: {', '.join(lacking)}" if lacking else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
