from __future__ import annotations

import pytest

from lj_image.builders.docker.session.ignore import PathPatterns

# what moby/patternmatcher says: patternmatcher_test.go, and Docker's page on .dockerignore
CASES = [
    (["a"], "a", True),
    (["a"], "a/b/c", True),  # everything below, too
    (["a"], "ab", False),
    (["/a/"], "a", True),
    (["./a"], "a", True),
    (["a/../b"], "b", True),
    (["*"], "a/b", True),
    (["*.py"], "x.py", True),
    (["*.py"], "d/x.py", False),  # a star stops at a slash
    (["**/*.py"], "d/e/x.py", True),
    (["**/*.py"], "x.py", True),
    (["d/**"], "d/e/f", True),
    (["d/**"], "d", False),
    (["a?c"], "abc", True),
    (["a?c"], "a/c", False),
    (["[a-c]x"], "bx", True),
    (["[^a-c]x"], "bx", False),
    ([r"a\*b"], "a*b", True),
    ([r"a\*b"], "axb", False),
    (["a.b"], "axb", False),
    (["*", "!keep"], "keep", False),
    (["*", "!keep"], "keep/below", False),
    (["!keep", "*"], "keep", True),  # the last one wins
    (["d", "!d/in/yes", "d/in/yes/no"], "d/in/yes", False),
    (["d", "!d/in/yes", "d/in/yes/no"], "d/in/yes/no", True),
    ([" a "], "a", True),
    (["."], "a", False),
    ([""], "a", False),
    (["ä*"], "äx", True),
    (["a(b)+"], "a(b)+", True),
]


@pytest.mark.parametrize(("patterns", "path", "covered"), CASES)
def test_patterns_cover_what_moby_says(patterns: list[str], path: str, covered: bool) -> None:
    assert PathPatterns(patterns).cover(path) is covered


def test_no_pattern_is_false() -> None:
    assert not PathPatterns(["", "."])
    assert PathPatterns(["a"])
