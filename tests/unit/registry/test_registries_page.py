"""docs/registries.md names tests; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "registries.md"


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text("utf-8")))
    files = set(re.findall(r"`(test_\w+\.py)`", PAGE.read_text("utf-8")))
    found = {path.name: path.read_text("utf-8") for path in TESTS.rglob("test_*.py")}
    written = {name for text in found.values() for name in re.findall(r"def (test_\w+)", text)}
    assert len(named) > 40
    assert named <= written
    assert files <= set(found)
