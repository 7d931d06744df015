"""Without an engine, without root, without a network: everything that a build needs is in the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from workshop import Workshop

from lj_image.oci.saved import open_image
from lj_image.oci.validate import validate
from standins.commands import Project

ROOT = Path(__file__).parents[3]
NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user may pass through, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="lj-image-alone-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_nobody_without_network_and_engine_assembles_every_kind_of_file(
    prepared: Project, base: Path, open_folder: Path
) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("only root can become another user in a network of its own (setpriv, unshare)")
    own_base = shutil.copytree(base, open_folder / "base")
    workshop = Workshop.copied(prepared, open_folder / "copy", own_base)
    for path in (open_folder, *open_folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
    program, env = _python_for_anyone(become)
    done = subprocess.run(
        ["unshare", "--net", *become, program, "-m", "lj_image.cli", *workshop.arguments("--json", builder="auto")],
        cwd=workshop.project.folder,
        env=workshop.project.environment() | env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)["manifest"]
    blob = workshop.oci / "blobs" / manifest.replace(":", "/")
    assert blob.stat().st_uid == NOBODY
    as_root = Workshop.copied(prepared, open_folder / "as root", own_base).build()
    assert as_root["manifest"] == manifest, "who assembles leaves no trace"


def _python_for_anyone(become: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return a Python that another user may run, and the variables that let it find the tool."""
    paths = os.pathsep.join((str(ROOT / "src"), sysconfig.get_path("purelib")))
    env = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for program in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            tried = subprocess.run(
                [*become, program, "-c", "import lj_image.cli, click"], env=os.environ | env, capture_output=True
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return program, env
    pytest.skip(f"no Python {version} here may be run by another user, with {paths}")


def test_the_default_is_to_assemble_where_no_engine_answers(workshop: Workshop) -> None:
    words = [word for word in workshop.arguments() if word not in ("--builder", "oci")]
    done = workshop.project.attempt(*words)
    assert done.returncode == 0
    assert "builder: oci (" in done.stderr


@pytest.mark.parametrize("transport", ["oci", "oci-archive", "docker-archive"])
def test_an_output_is_whole_and_holds_the_image(transport: str, workshop: Workshop, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "out"
    built = workshop.build("--output", f"{transport}:{place}")
    image = open_image(place)
    validate(image)
    assert str(image.image_id) == built["image_id"]
    assert [path.name for path in place.parent.iterdir()] == ["out"]
    again = workshop.build("--output", f"{transport}:{place}")
    assert again["up_to_date"], "what is there already is written over"


def test_a_folder_of_something_else_is_not_written_into(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    said = workshop.project.refuse(2, *workshop.arguments("--output", f"oci:{tmp_path}/mine"))
    assert "holds other things than an OCI layout" in said
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_what_only_an_engine_can_do_is_told_before_any_work(workshop: Workshop) -> None:
    said = workshop.project.refuse(2, *workshop.arguments(variant="stuck"))
    assert "Hello (kind apt), Marker (kind run)" in said
    assert "--builder docker" in said
    assert not workshop.oci.exists()


def test_a_part_of_it_can_be_assembled(workshop: Workshop) -> None:
    assert workshop.build("--only", "gadget", variant="stuck")["tag"] == "assembled:25.02-stuck-partial"


def test_engine_is_named_where_it_is_asked_for_and_none_answers(workshop: Workshop) -> None:
    done = workshop.project.attempt(*workshop.arguments("--output", "engine"))
    assert done.returncode not in (0, 2)
    assert "nowhere/docker.sock" in done.stderr


def test_the_same_inputs_are_up_to_date_and_any_other_are_not(workshop: Workshop) -> None:
    first = workshop.build()
    assert workshop.build()["up_to_date"]
    assert not workshop.build("--lazy")["up_to_date"]
    assert workshop.build()["manifest"] == first["manifest"]
    family = workshop.project.folder / "images/assembled/image.yaml"
    family.write_text(family.read_text().replace("hello, world", "hello, moon"))
    other = workshop.build()
    assert not other["up_to_date"]
    assert workshop.layers(other["manifest"]) == workshop.layers(first["manifest"]), "variables are no layer"
    (workshop.oci / "blobs" / workshop.layers(other["manifest"])[1].replace(":", "/")).unlink()
    again = workshop.build()
    assert (again["up_to_date"], again["manifest"]) == (False, other["manifest"])
