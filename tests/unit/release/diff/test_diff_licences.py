"""Licences: what metadata states, and what is remembered of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lj_image.release.diff.licences import LicenceMemory, licence_of, same_licence
from samples.locks import artifact

HEAD = "Metadata-Version: 2.1\nName: x\nVersion: 1\n"


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        ("License-Expression: Apache-2.0\nLicense: no\n", "Apache-2.0"),
        ("License: BSD-3-Clause\nClassifier: License :: OSI Approved :: BSD License\n", "BSD-3-Clause"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("Classifier: License :: OSI Approved\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        (
            "Classifier: License :: OSI Approved :: MIT License\n"
            "Classifier: License :: OSI Approved :: Apache Software License\n",
            "Apache Software License OR MIT License",
        ),
        (
            "License: Copyright (c) 2001\n        All rights\nClassifier: License :: Other/Proprietary License\n",
            "Other/Proprietary License",
        ),
        ("License: Copyright (c) 2001\n        All rights\n", "Copyright (c) 2001"),
        ("Summary: says nothing\n", ""),
        ("License: UNKNOWN\n", ""),
    ],
)
def test_the_most_exact_statement_wins(headers: str, licence: str) -> None:
    assert licence_of(HEAD + headers) == licence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("MIT", "MIT License"),
        ("Apache 2.0", "Apache-2.0"),
        ("Apache Software License", "Apache License, Version 2.0"),
        ("The MIT License", "mit"),
        ("BSD 3-Clause License", "BSD-3-Clause"),
    ],
)
def test_different_names_of_one_licence_are_the_same(one: str, other: str) -> None:
    assert same_licence(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [("MIT", "BSD"), ("GPL-2.0", "GPL-3.0"), ("", "MIT"), ("BSD-2-Clause", "BSD-3-Clause")]
)
def test_different_licences_are_not(one: str, other: str) -> None:
    assert not same_licence(one, other)


def test_a_wheel_is_opened_once(tmp_path: Path) -> None:
    known, unknown = artifact("a.whl", "wheel"), artifact("b.whl", "wheel")
    opened: list[str] = []

    def read(item: object) -> str | None:
        opened.append(item.file)  # type: ignore[attr-defined]
        return "MIT" if item is known else None

    for _ in range(2):
        assert LicenceMemory(tmp_path).of([known, unknown], read) == {known.sha256: "MIT"}
    assert opened == ["a.whl", "b.whl", "b.whl"]
    assert [path.name for path in tmp_path.iterdir()] == ["licences.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"a": 1})])
def test_a_damaged_memory_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "licences.json").write_text(text)
    item = artifact("a.whl", "wheel")
    assert LicenceMemory(tmp_path).of([item], lambda _: "MIT") == {item.sha256: "MIT"}


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    item = artifact("a.whl", "wheel")
    assert LicenceMemory(tmp_path / "cache").of([item], lambda _: "MIT") == {item.sha256: "MIT"}
