from __future__ import annotations

import pytest

from lj_image.verify.variables import expanded


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("/a:$P", "/a:/base"),
        ("/a:${P}", "/a:/base"),
        ("/a${P:+:${P}}", "/a:/base"),
        ("/a${NONE:+:${NONE}}", "/a"),
        ("${NONE:-/else}", "/else"),
        ("${P:-/else}", "/base"),
        ("${NONE}", ""),
    ],
)
def test_variables_are_those_of_the_base(value: str, expected: str) -> None:
    assert expanded(value, {"P": "/base"}) == expected
