from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from lj_image.builders.docker.redact import redact, redactions
from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext
from lj_image.errors import BuildError

SECRET = "p@ss w0rd/+ü"


def masked(text: str, *values: bytes) -> str:
    return redact(text, redactions(values))


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_value_is_masked_as_it_is_and_encoded(shown: str) -> None:
    assert masked(f"a {shown} b {shown}", SECRET.encode()) == "a *** b ***"


@pytest.mark.parametrize("user", ["u", "us", "use", "user"])
def test_a_value_within_basic_authentication_leaves_nothing_to_decode(user: str) -> None:
    header = base64.b64encode(f"{user}:{SECRET}:".encode()).decode()
    shown = masked(f"Authorization: Basic {header}", SECRET.encode())
    before, after = shown.removeprefix("Authorization: Basic ").split("***")
    assert len(before) <= len(user) * 4 // 3 + 4
    assert len(after) <= 7


def test_a_short_value_would_mask_everything_and_is_left() -> None:
    assert masked("a cat", b"cat", b"") == "a cat"
    assert masked("abcd", b"abcd") == "***"


def test_a_final_newline_of_the_value_does_not_hide_it() -> None:
    assert masked("tok3n!", b"tok3n!\n") == "***"


def test_a_file_is_masked_line_by_line_with_the_passwords_in_it() -> None:
    config = b"[global]\nindex-url = https://me:hunter22@pypi.example/simple\n"
    assert masked("pip: index-url = https://me:hunter22@pypi.example/simple", config) == "pip: ***"
    assert masked("Looking in https://me:hunter22@pypi.example", config) == "Looking in https://me:***@pypi.example"


def test_the_longer_value_goes_first() -> None:
    assert masked("token-long", b"token", b"token-long") == "***"


def test_a_request_derives_them_and_never_shows_its_secrets() -> None:
    request = BuildRequest(BuildContext("FROM x"), secrets={"tok": b"hunter22"})
    assert "hunter22" in request.redact
    assert "hunter22" not in repr(request)


def test_a_secret_larger_than_buildkit_takes_is_refused_before_the_build() -> None:
    with pytest.raises(BuildError, match="secret big has 512001 bytes"):
        BuildRequest(BuildContext("FROM x"), secrets={"big": bytes(500 * 1024 + 1)})
