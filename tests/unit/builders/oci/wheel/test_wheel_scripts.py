"""Scripts of wheels, and those that entry points ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.oci.wheel.install import installed
from lj_image.errors import BuildError
from samples.wheels import FILE, INFO, SCHEME, SITE, Member, tree, wheel

SCRIPTS = "tiny-1.0.data/scripts"


def script(folder: Path, content: bytes, mode: int = FILE | 0o755) -> tuple[int, bytes]:
    found = tree(installed(wheel(folder, Member(f"{SCRIPTS}/run", content, mode)), SCHEME))
    return found["usr/local/bin/run"]


def commands(folder: Path, text: str, *others: Member, pip: str = "23.0.1") -> dict[str, tuple[int, bytes]]:
    points = Member(f"{INFO}/entry_points.txt", text.encode())
    found = tree(installed(wheel(folder, points, *others), replace(SCHEME, pip=pip)))
    return {path.removeprefix("usr/local/bin/"): value for path, value in found.items() if "/bin/" in path}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"#!python\nprint()\n", b"#!/usr/bin/python3\nprint()\n"),
        (b"#!pythonw\nprint()\n", b"#!/usr/bin/python3\nprint()\n"),
        (b"#!python -E -s\nprint()\n", b"#!/usr/bin/python3\nprint()\n"),
        (b"#!python\r\nprint()\r\n", b"#!/usr/bin/python3\nprint()\r\n"),
        (b"#!python", b"#!/usr/bin/python3\n"),
        (b"#!python\n# \xe4 in latin-1\n", b"#!/usr/bin/python3\n# \xe4 in latin-1\n"),
        (b"#!python\n\x00\x01\x02", b"#!/usr/bin/python3\n\x00\x01\x02"),
        (b"#!/usr/bin/env python\n", b"#!/usr/bin/env python\n"),
        (b"#! python\n", b"#! python\n"),
        (b"#!/bin/sh\n", b"#!/bin/sh\n"),
        (b"\xef\xbb\xbf#!python\n", b"\xef\xbb\xbf#!python\n"),
        (b"\x7fELF\x02", b"\x7fELF\x02"),
        (b"", b""),
        (b"#!", b"#!"),
    ],
)
def test_only_a_first_line_that_begins_with_the_placeholder_is_written_anew(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    assert script(tmp_path, before) == (0o755, after)


def test_a_script_that_may_not_be_run_stays_so_as_pip_leaves_it(tmp_path: Path) -> None:
    assert script(tmp_path, b"#!python\n", FILE | 0o644)[0] == 0o644


def test_the_placeholder_elsewhere_is_left_alone(tmp_path: Path) -> None:
    found = tree(installed(wheel(tmp_path, Member("tiny/run", b"#!python\n")), SCHEME))
    assert found[f"{SITE}/tiny/run"][1] == b"#!python\n"


def test_console_and_gui_scripts_get_a_command_each(tmp_path: Path) -> None:
    text = "[console_scripts]\nrun = tiny.cli:main\n\n[gui_scripts]\nshow=tiny:App.run\n[tiny.plugins]\nx = tiny\n"
    found = commands(tmp_path, text)
    assert sorted(found) == ["run", "show"]
    assert found["show"][0] == 0o755
    assert b"from tiny import App\n" in found["show"][1]
    assert b"sys.exit(App.run())" in found["show"][1]


@pytest.mark.parametrize(
    ("pip", "body"),
    [
        (
            "25.1.1",
            "# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom tiny.cli import main\nif __name__ == '__main__':\n"
            "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n",
        ),
        (
            "25.3",
            "import sys\nfrom tiny.cli import main\nif __name__ == '__main__':\n"
            "    if sys.argv[0].endswith('.exe'):\n        sys.argv[0] = sys.argv[0][:-4]\n    sys.exit(main())\n",
        ),
        (
            "26.0",
            "import sys\nfrom tiny.cli import main\nif __name__ == '__main__':\n"
            "    sys.argv[0] = sys.argv[0].removesuffix('.exe')\n    sys.exit(main())\n",
        ),
    ],
)
def test_the_text_is_that_of_the_bases_pip(tmp_path: Path, pip: str, body: str) -> None:
    found = commands(tmp_path, "[console_scripts]\nrun = tiny.cli:main\n", pip=pip)
    assert found == {"run": (0o755, f"#!/usr/bin/python3\n{body}".encode())}


@pytest.mark.parametrize("pip", ["", "unknown"])
def test_a_base_without_pip_gets_the_newest_text(tmp_path: Path, pip: str) -> None:
    assert b"removesuffix" in commands(tmp_path, "[console_scripts]\nrun = tiny:main\n", pip=pip)["run"][1]


def test_extras_of_an_entry_point_are_left_out(tmp_path: Path) -> None:
    found = commands(tmp_path, "[console_scripts]\nrun = tiny.cli:main [fast, other]\n")
    assert b"from tiny.cli import main\n" in found["run"][1]


def test_lines_of_entry_points_may_end_as_on_windows(tmp_path: Path) -> None:
    assert list(commands(tmp_path, "[console_scripts]\r\nrun = tiny.cli:main\r\n")) == ["run"]


def test_what_setuptools_made_for_an_entry_point_gives_way(tmp_path: Path) -> None:
    made = [Member(f"{SCRIPTS}/{name}", b"#!python\nold") for name in ("run", "run-script.py", "run.exe", "run.pya")]
    kept = Member(f"{SCRIPTS}/run.sh", b"new")
    found = commands(tmp_path, "[console_scripts]\nrun = tiny:main\n", *made, kept)
    assert sorted(found) == ["run", "run.sh"]
    assert b"old" not in found["run"][1]


def test_pip_and_easy_install_are_named_after_the_python_they_serve(tmp_path: Path) -> None:
    text = "[console_scripts]\npip = tiny:pip\npip3 = tiny:pip\npip3.7 = tiny:pip\npip-tool = tiny:tool\n"
    text += "easy_install = tiny:easy\neasy_install-3.7 = tiny:easy\n"
    expected = ["easy_install", "easy_install-3.11", "pip", "pip-tool", "pip3", "pip3.11"]
    assert sorted(commands(tmp_path, text)) == expected


@pytest.mark.parametrize("name", ["../run", "/bin/run", "sub/run", "..", "a b", "run\\x"])
def test_an_entry_point_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BuildError) as caught:
        commands(tmp_path, f"[console_scripts]\n{name} = tiny:main\n")
    assert f"tiny-1.0-py3-none-any.whl: {INFO}/entry_points.txt: the entry point {name!r}" in caught.value.message


@pytest.mark.parametrize("value", ["tiny", "tiny.cli", "tiny:", ":main", "tiny:main()", "tiny:a; import os", "1 + 1"])
def test_an_entry_point_without_a_function_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(BuildError) as caught:
        commands(tmp_path, f"[console_scripts]\nrun = {value}\n")
    assert "entry_points.txt: the entry point run names no function" in caught.value.message


@pytest.mark.parametrize("content", [b"[console_scripts]\nrun\n", b"\xff\xfe"])
def test_entry_points_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes) -> None:
    points = Member(f"{INFO}/entry_points.txt", content)
    with pytest.raises(BuildError, match=r"entry_points\.txt: it cannot be read"):
        list(installed(wheel(tmp_path, points), SCHEME))
