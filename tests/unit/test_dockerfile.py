"""The Dockerfile as a reviewer reads it. `UPDATE_GOLDEN=1 pytest tests/unit/test_dockerfile.py` rewrites the files."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.dockerfile import Form, context, render
from lj_image.lock.lock import Artifact
from lj_image.lock.lockfile import lock_path, read_lock
from lj_image.plan import Plan, plan
from lj_image.templating import project_templates
from samples.locks import made_up_lock
from samples.tiny import IMAGE, RELEASE

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/unit/golden"
CATALOG = Catalog(ROOT / "images")

EVERY_KIND = (
    IMAGE
    + """\
  notes:
    title: Notes
    sources:
      open: {kind: files, tree: rootfs, path: /usr/share/tiny}
  debugger:
    title: Debugger
    sources:
      open: {kind: apt, packages: {gdb: "{version}*"}}
  setup:
    title: Setup
    sources:
      open:
        kind: run
        commands: ["echo {version} > /etc/setup", "chmod 0644 /etc/setup"]
        check: cat /etc/setup
        expect: "{version}"
        secrets: [token]
  driver-kit:
    title: Driver kit
    sources:
      open: {kind: archive, location: library, archive: "kit {version}.tar.gz", path: /opt/kit, strip_components: 1}
"""
)


ZIPPED = """\
  pack:
    title: Pack
    sources:
      open:
        {kind: archive, location: library, archive: "pack {version}.zip", path: /opt/my pack, strip_components: 1}
"""


def real_plan(variant: str, config: Config) -> Plan:
    release = resolve(CATALOG, config, "25.02", variant=variant)
    path = lock_path(release)
    return plan(release, read_lock(path) if path.exists() else made_up_lock(release))


def every_kind(write_catalog: Callable[..., Catalog], config: Config) -> Plan:
    release = RELEASE + '  notes: "1"\n  debugger: 15.0.50\n  setup: "2"\n  driver-kit: "3"\n'
    catalog = write_catalog(image=EVERY_KIND, r25_02=release)
    tree = catalog.root / "tiny/rootfs/read me.txt"
    tree.parent.mkdir()
    tree.write_text("read me\n")
    resolved = resolve(catalog, config, "25.02", variant="open")
    return plan(resolved, made_up_lock(resolved))


def zipped(write_catalog: Callable[..., Catalog], config: Config) -> Plan:
    catalog = write_catalog(image=IMAGE + ZIPPED, r25_02=RELEASE + '  pack: "4"\n')
    resolved = resolve(catalog, config, "25.02", variant="open")
    return plan(resolved, made_up_lock(resolved), only=("pack",))


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "changed; if it should, run with UPDATE_GOLDEN=1 and review the difference"


def hadolint(path: Path) -> str:
    program = Path(sys.executable).with_name("hadolint")
    command = [str(program), "--no-color", "--config", str(ROOT / ".hadolint.yaml"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("form", ["mounts", "staged"])
@pytest.mark.parametrize("variant", ["open", "serverless"])
def test_the_dockerfile_of_25_02_is_the_reviewed_one(config: Config, variant: str, form: Form) -> None:
    text = render(real_plan(variant, config), project_templates(CATALOG.root), form=form)
    check_golden(f"25.02-{variant}.{form}.Dockerfile", text)


@pytest.mark.parametrize("form", ["mounts", "staged"])
def test_every_kind_of_component_has_its_step(
    write_catalog: Callable[..., Catalog], config: Config, form: Form
) -> None:
    text = render(every_kind(write_catalog, config), project_templates(CATALOG.root), form=form)
    check_golden(f"every-kind.{form}.Dockerfile", text)


@pytest.mark.parametrize("form", ["mounts", "staged"])
def test_a_zip_is_unpacked_by_a_program_of_ours(
    write_catalog: Callable[..., Catalog], config: Config, form: Form
) -> None:
    text = render(zipped(write_catalog, config), project_templates(CATALOG.root), form=form)
    check_golden(f"zip.{form}.Dockerfile", text)


@pytest.mark.parametrize("form", ["mounts", "staged"])
def test_modules_are_compiled_where_the_image_asks_for_it(
    write_catalog: Callable[..., Catalog], config: Config, form: Form
) -> None:
    catalog = write_catalog(image=IMAGE.replace("components:\n", "bytecode: unchecked-hash\ncomponents:\n", 1))
    resolved = resolve(catalog, config, "25.02", variant="open")
    text = render(plan(resolved, made_up_lock(resolved), only=("tool",)), project_templates(CATALOG.root), form=form)
    check_golden(f"bytecode.{form}.Dockerfile", text)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.Dockerfile")), ids=lambda path: path.name)
def test_hadolint_has_nothing_to_say(path: Path) -> None:
    assert hadolint(path) == ""


def test_a_mirror_changes_where_the_base_is_taken_from_and_not_its_name(config: Config) -> None:
    text = render(
        real_plan("serverless", config), project_templates(CATALOG.root), base="local:5000/nvidia/pytorch:25.01"
    )
    assert "FROM local:5000/nvidia/pytorch:25.01\n" in text
    assert 'org.opencontainers.image.base.name="nvcr.io/nvidia/pytorch:25.01-py3"' in text


def test_a_label_is_text_and_a_path_may_have_spaces(write_catalog: Callable[..., Catalog], config: Config) -> None:
    described = EVERY_KIND.replace("title: Tiny", 'title: Tiny\ndescription: says "$HOME"', 1)
    catalog = write_catalog(image=described.replace("path: /usr/share/tiny", "path: /usr/share/tiny one"))
    (catalog.root / "tiny/rootfs").mkdir()
    release = RELEASE + '  notes: "1"\n'
    (catalog.root / "tiny/releases/25.02.yaml").write_text(release)
    resolved = resolve(catalog, config, "25.02", variant="open")
    text = render(plan(resolved, made_up_lock(resolved)), project_templates(CATALOG.root))
    assert 'org.opencontainers.image.description="says \\"\\$HOME\\""' in text
    assert 'COPY ["layers/notes/", "/usr/share/tiny one"]' in text


def test_the_context_has_a_folder_for_each_layer(
    write_catalog: Callable[..., Catalog], config: Config, tmp_path: Path
) -> None:
    def file_of(artifact: Artifact) -> tuple[str, str, Path]:
        path = tmp_path / artifact.sha256
        path.write_bytes(artifact.file.encode())
        return artifact.file, artifact.sha256, path

    made = context(every_kind(write_catalog, config), "FROM x\n", file_of)

    assert [file.path for file in made.files] == [
        "layers/driver-kit/kit 3.tar.gz",
        "layers/kit/kit_core-12.8.57-py3-none-any.whl",
        "layers/kit/kit_extra-12.8.61-py3-none-any.whl",
        "layers/kit/requirements.txt",
        "layers/library/lib_open-2.23.4-py3-none-any.whl",
        "layers/library/requirements.txt",
        "layers/notes/read me.txt",
        "layers/protected-packages/constraints.txt",
        "layers/tool/requirements.txt",
        "layers/tool/tool-1.4.2-py3-none-any.whl",
    ]
    [requirements] = [file for file in made.files if file.path == "layers/tool/requirements.txt"]
    sha256 = hashlib.sha256(b"tool-1.4.2-py3-none-any.whl").hexdigest()
    assert requirements.source == f"tool==1.4.2 --hash=sha256:{sha256}\n".encode()


def test_the_program_that_unpacks_stands_beside_its_zip(
    write_catalog: Callable[..., Catalog], config: Config, tmp_path: Path
) -> None:
    made = context(zipped(write_catalog, config), "FROM x\n", lambda artifact: (artifact.file, "0" * 64, tmp_path))
    found = {file.path: file.source for file in made.files}
    assert list(found) == [
        "layers/pack/pack 4.zip",
        "layers/pack/unzip.py",
        "layers/protected-packages/constraints.txt",
    ]
    assert found["layers/pack/unzip.py"] == (ROOT / "src/lj_image/unzip.py").read_bytes()


def test_a_context_is_written_by_links_and_never_half(tmp_path: Path, write_catalog: Callable[..., Catalog]) -> None:
    from lj_image.context import BuildContext, ContextFile

    wheel = tmp_path / "store" / "abc"
    wheel.parent.mkdir()
    wheel.write_bytes(b"wheel")
    made = BuildContext("FROM x\n", (ContextFile("layers/a b/ü.whl", wheel), ContextFile("run.sh", b"#!", 0o755)))
    made.write_to(tmp_path / "out")

    assert (tmp_path / "out/Dockerfile").read_text() == "FROM x\n"
    assert (tmp_path / "out/layers/a b/ü.whl").stat().st_ino == wheel.stat().st_ino
    assert (tmp_path / "out/run.sh").stat().st_mode & 0o777 == 0o755
    assert not list((tmp_path / "out").rglob("*.partial"))
