"""References; the rows are those of engines: `docker pull NAME` says what it takes NAME for."""

from __future__ import annotations

import pytest

from lj_image.errors import UsageError
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "full", "familiar"),
    [
        ("six", "docker.io/library/six", "six"),
        ("six:1", "docker.io/library/six:1", "six:1"),
        ("me/six:1", "docker.io/me/six:1", "me/six:1"),
        ("docker.io/six", "docker.io/library/six", "six"),
        ("index.docker.io/me/six", "docker.io/me/six", "me/six"),
        ("docker.io/library/six:1", "docker.io/library/six:1", "six:1"),
        ("localhost/six", "localhost/six", "localhost/six"),
        ("localhost:5000/a/b/six:1", "localhost:5000/a/b/six:1", "localhost:5000/a/b/six:1"),
        ("registry.cn-beijing.example.com/x_y/z--a:v1.2-b", *["registry.cn-beijing.example.com/x_y/z--a:v1.2-b"] * 2),
        ("[::1]:5000/six", "[::1]:5000/six", "[::1]:5000/six"),
        (f"six@{DIGEST}", f"docker.io/library/six@{DIGEST}", f"six@{DIGEST}"),
        (f"h.io:1/six:2@{DIGEST}", f"h.io:1/six:2@{DIGEST}", f"h.io:1/six:2@{DIGEST}"),
    ],
)
def test_a_reference_is_what_an_engine_takes_it_for(text: str, full: str, familiar: str) -> None:
    found = Reference.parse(text)
    assert (str(found), found.familiar) == (full, familiar)
    assert Reference.parse(full) == Reference.parse(familiar) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Six",
        "six:",
        "six:a b",
        "six:" + "t" * 129,
        "a//b",
        "/six",
        "six/",
        "-h.io/six",
        "https://h.io/six",
        "six@sha256:12",
        "six@md5:0123",
        "h.io/" + "a" * 251,
        "six\n",
    ],
)
def test_other_words_are_no_reference(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        Reference.parse(text)
    assert raised.value.hint


def test_a_digest_counts_before_a_tag_and_latest_where_neither_is_said() -> None:
    assert Reference.parse(f"six:1@{DIGEST}").wanted == DIGEST
    assert (Reference.parse("six:1").wanted, Reference.parse("six").wanted) == ("1", "latest")
    assert str(Reference.parse("six").tagged()) == "docker.io/library/six:latest"
    assert Reference.parse(f"six@{DIGEST}").tagged().tag is None
    assert str(Reference.parse("h.io/six:1").at(Digest.parse(DIGEST))) == f"h.io/six@{DIGEST}"
