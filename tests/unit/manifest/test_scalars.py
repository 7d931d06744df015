"""A version as a YAML scalar: what other readers would take for something else is quoted."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lj_image.manifest.scalars import version_text


@pytest.mark.parametrize(
    "version", ["0.7.3", "12.8.0", "4.48.3+ali", "2.6.0a0+ecf3bae40a.nv25.1", "15.0.50.20240403-git", "1!2.0", "v2"]
)
def test_a_version_that_nobody_misreads_stands_without_quotes(version: str) -> None:
    assert version_text(version) == version


@pytest.mark.parametrize(
    "version", ["2.50", "25.10", "1e5", "1.5e3", "2025", "0x1f", "0o17", "1_000", "2025-04-30", "no", "on", "y", "null"]
)
def test_a_version_that_a_reader_would_take_for_something_else_is_quoted(version: str) -> None:
    assert version_text(version) == f'"{version}"'


@pytest.mark.parametrize("version", ["a:b", "*", "1,2", "{x}", "#1", '"', "'", "-", "日本"])
def test_a_version_with_marks_of_yaml_is_quoted(version: str) -> None:
    text = version_text(version)
    assert text.startswith('"')
    assert yaml.safe_load(f"[{text}]") == [version]


@pytest.mark.parametrize(("style", "text"), [("'", "'0.7.3'"), ('"', '"0.7.3"'), (None, "0.7.3")])
def test_the_quotes_that_were_there_stay(style: str | None, text: str) -> None:
    assert version_text("0.7.3", style) == text


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), st.sampled_from([None, "'", '"']))
def test_whatever_is_asked_for_is_read_back(version: str, style: str | None) -> None:
    assert yaml.safe_load(f"v: {version_text(version, style)}\n") == {"v": version}
