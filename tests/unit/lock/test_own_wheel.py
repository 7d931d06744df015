"""A project of ours becomes a wheel: what hatchling would install, in bytes that no machine leaves a mark on."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.install import installed
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.catalog.project import read_project
from lj_image.errors import BuildError, ManifestError
from lj_image.lock.own_wheel import own_distribution, unmet, wheel_name, wheel_of

ROOT = Path(__file__).parents[3]
TRINKET = ROOT / "tests/families/assembled/trinket"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the project that may be written to."""
    return Path(shutil.copytree(TRINKET, tmp_path / "trinket"))


def texts(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.fixture(params=[TRINKET, *sorted(path.parent for path in ROOT.glob("images/*/*/pyproject.toml"))], ids=str)
def project(request: pytest.FixtureRequest) -> Path:
    """Return the folder of each project that the repository has."""
    found: Path = request.param
    return found


def test_it_holds_the_files_that_hatchling_puts_into_its_own(project: Path, tmp_path: Path) -> None:
    clean = Path(
        shutil.copytree(project, tmp_path / "clean", ignore=shutil.ignore_patterns(".venv", "__pycache__", "tests"))
    )
    program = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file = done.stdout.strip().splitlines()[-1]
    found = read_project(clean)
    assert wheel_name(found) == file

    with zipfile.ZipFile(tmp_path / file) as theirs, zipfile.ZipFile(io.BytesIO(wheel_of(found))) as ours:
        expected, actual = texts(theirs), texts(ours)
        assert actual.keys() == expected.keys()
        described = {name for name in expected if name.endswith(("/METADATA", "/WHEEL", "/RECORD"))}
        for name in expected.keys() - described:
            assert actual[name].split() == expected[name].split(), name
        (metadata,) = (name for name in described if name.endswith("METADATA"))
        our_headers, their_headers = (HeaderParser().parsestr(one[metadata].decode()) for one in (actual, expected))
    for header in ("Name", "Version", "Summary", "Requires-Python"):
        assert our_headers[header] == their_headers[header], header
    assert our_headers["License"] == their_headers["License-Expression"]
    assert sorted(our_headers.get_all("Requires-Dist", [])) == sorted(their_headers.get_all("Requires-Dist", []))


def test_times_modes_and_what_tools_leave_behind_are_not_in_its_bytes(copy: Path) -> None:
    before = own_distribution(read_project(TRINKET), "trinket")
    for path in (copy / "src").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    for junk in ("__pycache__/a.pyc", ".hidden/a.py", "words.txt~", "b.pyc"):
        (copy / "src/trinket" / junk).parent.mkdir(exist_ok=True)
        (copy / "src/trinket" / junk).write_text("junk")
    (copy / "README.md").write_text("about it")
    assert own_distribution(read_project(copy), "trinket") == before
    (copy / "src/trinket/words.txt").write_text("other words")
    assert own_distribution(read_project(copy), "trinket").artifact.sha256 != before.artifact.sha256


def test_its_bytes_are_the_same_in_a_process_with_other_settings() -> None:
    program = (
        "import hashlib, sys; from pathlib import Path; from lj_image.catalog.project import read_project; "
        "from lj_image.lock.own_wheel import wheel_of; "
        f"print(hashlib.sha256(wheel_of(read_project(Path({str(TRINKET)!r})))).hexdigest())"
    )
    settings = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "99"}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == own_distribution(read_project(TRINKET), "trinket").artifact.sha256


def test_it_installs_into_site_packages_with_its_hook_and_its_command(tmp_path: Path) -> None:
    found = read_project(TRINKET)
    file = tmp_path / wheel_name(found)
    file.write_bytes(wheel_of(found))
    site = "usr/local/lib/python3.11/dist-packages"
    scheme = Scheme(site, "usr/local", "3.11", "/usr/bin/python3", "23.0.1")
    paths = {entry.path for entry in installed(Wheel(file, file.name, "0" * 64), scheme)}
    assert {"usr/local/bin/trinket", f"{site}/trinket.pth", f"{site}/trinket/__init__.py"} <= paths


def test_a_file_that_is_to_be_in_it_and_is_absent_is_named(copy: Path) -> None:
    (copy / "trinket.pth").unlink()
    with pytest.raises(BuildError, match=r"trinket 1\.2: trinket\.pth is to be in its wheel") as failure:
        wheel_of(read_project(copy))
    assert str(copy / "trinket.pth") in str(failure.value.hint)
    shutil.rmtree(copy / "src")
    with pytest.raises(BuildError, match="src/trinket is to be in its wheel"):
        wheel_of(read_project(copy))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version = "1.2"', 'dynamic = ["version"]', r"project\.dynamic: the wheel .* would not have it"),
        ("[project.scripts]", "[project.gui-scripts]", r"project\.gui-scripts"),
        ("packages =", 'exclude = ["x"]\npackages =', r"wheel\.exclude"),
        ('packages = ["src/trinket"]', "", "'packages'"),
        ('name = "trinket"', "", "'name'"),
        ('["src/trinket"]', '["../trinket"]', "leads out of the project"),
        ('"trinket.pth" = "trinket.pth"', '"trinket.pth" = "/etc/x"', "leads out of the project"),
        ("[project]", "[project", "cannot be read"),
    ],
)
def test_a_project_that_our_wheel_would_not_do_justice_is_refused(copy: Path, old: str, new: str, said: str) -> None:
    file = copy / "pyproject.toml"
    assert file.read_text().count(old) == 1
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ManifestError, match=said) as failure:
        read_project(copy)
    assert str(failure.value.location) == str(file)


def test_a_folder_without_pyproject_toml_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="so it is no project"):
        read_project(tmp_path)


def test_requirements_that_an_image_does_not_meet_are_named(copy: Path) -> None:
    file = copy / "pyproject.toml"
    text = file.read_text().replace('["gadget>=1"]', "['gadget>=1', 'Kit_Core<2', 'win; os_name == \"nt\"']")
    file.write_text(text)
    found = read_project(copy)
    assert unmet(found, {"gadget": "1.0", "kit-core": "1.9"}) == ()
    assert unmet(found, {"gadget": "0.9"}) == ("Kit_Core<2", "gadget>=1")
    assert found.required_names() == {"gadget", "kit-core", "win"}
