"""A project in an image's own folder, from its pyproject.toml to the layer and the store: said once, locked nowhere."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.description import origin
from lj_image.catalog.lint import lint
from lj_image.catalog.release import PipSource, Release
from lj_image.catalog.resolve import resolve
from lj_image.catalog.resolved import resolve_once
from lj_image.config import Config
from lj_image.context import ContextFile
from lj_image.dockerfile import context, render
from lj_image.errors import ArtifactError, BuildError, ManifestError
from lj_image.lock.inputs import inputs_of
from lj_image.lock.progress import Silent
from lj_image.lock.project import demand_of
from lj_image.lock.store import ArtifactStore
from lj_image.lock.why import why
from lj_image.plan import PipLayer, plan, plan_digest
from lj_image.release.diff.releases import contents_of_release
from lj_image.release.files import fetch_missing
from lj_image.snapshot import Snapshots
from lj_image.templating import project_templates
from samples.locks import distribution, made_up_lock
from samples.tiny import IMAGE, RELEASE

ROOT = Path(__file__).parents[2]
OWN = "  bench:\n    title: Bench\n    sources:\n      open: {kind: pip, project: bench, imports: bench}\n"
PYPROJECT = """\
[project]
name = "Tiny_Bench"
version = "0.3"
dependencies = ["click>=8.1"]

[project.scripts]
bench = "bench:main"

[tool.hatch.build.targets.wheel]
packages = ["src/bench"]
"""
CLICK = distribution("click", "8.2", "shared", required_by=("tool",))


@pytest.fixture
def catalog(write_catalog: Callable[..., Catalog]) -> Catalog:
    """Return a catalog whose family has a project."""
    found = write_catalog(image=IMAGE + OWN)
    folder = found.root / "tiny" / "bench"
    (folder / "src/bench").mkdir(parents=True)
    (folder / "src/bench/__init__.py").write_text("def main(): print('bench')\n")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return found


@pytest.fixture
def release(catalog: Catalog, config: Config) -> Release:
    return resolve(catalog, config, "25.02", variant="open")


@pytest.fixture
def store(config: Config) -> ArtifactStore:
    return ArtifactStore(config.cache_dir)


def without_locked_files(found: Release) -> Release:
    """Return a release with nothing but its project, so that nothing needs an index."""
    from dataclasses import replace

    return replace(found, components=tuple(item for item in found.components if item.id == "bench"))


def test_a_release_has_it_at_its_own_version_without_promising_it(release: Release) -> None:
    component = release.component("bench")
    assert component is not None
    assert (component.version, component.installed_version) == ("0.3", "0.3")
    assert isinstance(component.source, PipSource)
    assert component.source.distributions == (("tiny-bench", "0.3"),)
    assert origin(component) == "project bench/"


def test_a_variant_without_a_source_for_it_does_not_miss_it(catalog: Catalog, config: Config) -> None:
    assert resolve(catalog, config, "25.02", variant="vendor").component("bench") is None


def test_a_release_may_go_without(write_catalog: Callable[..., Catalog], catalog: Catalog, config: Config) -> None:
    write_catalog(image=IMAGE + OWN, r25_03='release: "25.03"\nprevious: "25.02"\nunlisted: [bench]\n')
    assert resolve(Catalog(catalog.root), config, "25.03", variant="open").component("bench") is None
    assert [item.message for item in lint(Catalog(catalog.root)) if "bench" in item.message] == []


def test_another_version_that_is_promised_or_tried_is_refused(
    write_catalog: Callable[..., Catalog], catalog: Catalog, config: Config
) -> None:
    write_catalog(image=IMAGE + OWN, r25_02=RELEASE + "  bench: '0.2'\n")
    with pytest.raises(ManifestError, match=r"0\.2 is promised, and bench is at 0\.3") as failure:
        resolve(Catalog(catalog.root), config, "25.02", variant="open")
    assert str(failure.value.location).endswith("25.02.yaml:8:3")
    write_catalog(image=IMAGE + OWN)
    with pytest.raises(ManifestError, match=r"0\.9 is promised"):
        resolve(Catalog(catalog.root), config, "25.02", variant="open", overridden={"bench": "0.9"})


@pytest.mark.parametrize("more", ["version: '1'", "index: vendor", "extras: [a]", "overrides: true", "distribution: x"])
def test_what_means_nothing_beside_a_project_is_refused(
    more: str, write_catalog: Callable[..., Catalog], catalog: Catalog, config: Config
) -> None:
    write_catalog(image=IMAGE + OWN.replace("project: bench", f"project: bench, {more}"))
    with pytest.raises(ManifestError, match=f"{more.partition(':')[0]} means nothing beside `project`"):
        resolve(Catalog(catalog.root), config, "25.02", variant="open")


def test_lint_says_what_is_wrong_with_a_project(catalog: Catalog) -> None:
    (catalog.root / "tiny/bench/pyproject.toml").write_text("[project]\nname = 'x'\n")
    found = [item for item in lint(Catalog(catalog.root)) if "needs a name, a version" in item.message]
    assert found
    assert str(found[0].location).endswith("bench/pyproject.toml")


def test_a_bumped_version_is_seen_by_whoever_resolved_before(catalog: Catalog, config: Config, tmp_path: Path) -> None:
    def version() -> str:
        kept = Snapshots(tmp_path / "kept")
        found = resolve_once(Catalog(catalog.root), config, kept, "25.02", variant="open").component("bench")
        assert found is not None
        return found.version

    file = catalog.root / "tiny/bench/pyproject.toml"
    assert version() == version() == "0.3"
    file.write_text(PYPROJECT.replace("0.3", "0.4"))
    assert version() == "0.4"


def test_the_resolver_is_not_asked_for_it_so_no_lock_grows_stale(release: Release) -> None:
    assert not [line for line in inputs_of(release) if "bench" in line]
    assert demand_of(release).pin("tiny-bench") is None


def test_its_layer_stands_behind_what_it_requires(release: Release) -> None:
    layers = plan(release, made_up_lock(release, more=[CLICK])).layers
    assert [layer.title for layer in layers] == ["kit", "tool", "library", "shared", "bench", "protected packages"]


def test_a_partial_image_of_it_has_what_it_requires(release: Release) -> None:
    other = distribution("other", "1", "shared", required_by=("lib-open",))
    found = plan(release, made_up_lock(release, more=[CLICK, other]), only=["bench"])
    assert [item.name for item in found.installed()] == ["click", "tiny-bench"]


def test_an_edit_changes_its_layer_and_a_readme_does_not(release: Release, catalog: Catalog) -> None:
    def digest() -> str:
        return plan_digest(plan(release, made_up_lock(release, more=[CLICK])))

    before = digest()
    folder = catalog.root / "tiny/bench"
    (folder / "README.md").write_text("about it")
    (folder / "tests").mkdir()
    (folder / "tests/test_it.py").write_text("")
    assert digest() == before
    (folder / "src/bench/__init__.py").write_text("def main(): print('better')\n")
    assert digest() != before


def test_a_build_writes_it_into_the_store_and_asks_no_index(
    release: Release, config: Config, store: ArtifactStore
) -> None:
    alone = without_locked_files(release)
    base = alone.base.facts.packages | {"click": "8.1"}  # type: ignore[operator]
    alone.base.facts.packages.update(base)  # type: ignore[attr-defined]
    planned = plan(alone, made_up_lock(alone))
    fetch_missing(planned, config, store, Silent())
    (layer,) = (layer for layer in planned.layers if isinstance(layer, PipLayer))
    path = store.require(layer.distributions[0].artifact)
    assert "bench/__init__.py" in zipfile.ZipFile(path).namelist()

    templates = project_templates(ROOT / "images", config.cache_dir)
    made = context(planned, render(planned, templates), lambda item: (item.file, item.sha256, store.path(item.sha256)))
    names = {file.path: file for file in made.files}
    assert isinstance(names["layers/bench/tiny_bench-0.3-py3-none-any.whl"], ContextFile)
    pinned = names["layers/bench/requirements.txt"].source
    assert pinned == f"tiny-bench==0.3 --hash=sha256:{path.name}\n".encode()


def test_a_requirement_that_the_image_lacks_is_said_before_anything_is_built(
    release: Release, config: Config, store: ArtifactStore
) -> None:
    with pytest.raises(BuildError, match=r"tiny-bench requires click>=8\.1, which 25\.02-tool1\.4 does not have"):
        fetch_missing(plan(release, made_up_lock(release)), config, store, Silent())


def test_a_file_that_is_edited_between_plan_and_build_is_noticed(
    release: Release, catalog: Catalog, config: Config, store: ArtifactStore
) -> None:
    planned = plan(release, made_up_lock(release, more=[CLICK]))
    (catalog.root / "tiny/bench/src/bench/__init__.py").write_text("")
    with pytest.raises(ArtifactError, match=r"tiny_bench-0\.3-py3-none-any\.whl is not in the cache"):
        fetch_missing(planned, config, store, Silent())


def test_why_says_whose_it_is(release: Release, store: ArtifactStore) -> None:
    lock = made_up_lock(release, more=[CLICK])
    (found,) = why(release, lock, "bench", store)
    assert (found.version, found.remark) == (
        "0.3",
        "a project of ours: its wheel is made from bench/, and no lock names it",
    )
    assert why(release, lock, "click", store)[0].name == "click"


def test_a_comparison_of_releases_has_it_among_what_is_installed(release: Release, config: Config) -> None:
    from dataclasses import replace

    from lj_image.lock.lockfile import lock_path, with_digest, write_lock

    lock = with_digest(replace(made_up_lock(release, more=[CLICK]), inputs=inputs_of(release)))
    lock_path(release).parent.mkdir()
    write_lock(lock, lock_path(release))
    found = contents_of_release(release, config.cache_dir).distributions
    assert found is not None
    assert (found["tiny-bench"].version, found["tiny-bench"].component) == ("0.3", "bench")


@pytest.mark.parametrize(
    "lock", sorted(ROOT.glob("images/training-nv-pytorch/locks/*.txt")), ids=lambda path: path.stem
)
def test_every_locked_release_meets_the_requirements_of_ljperf(lock: Path) -> None:
    from lj_image.catalog.project import read_project
    from lj_image.lock.lockfile import read_lock
    from lj_image.lock.own_wheel import unmet

    project = read_project(lock.parents[1] / "ljperf")
    assert project.requires
    assert unmet(project, {item.name: item.version for item in read_lock(lock).distributions}) == ()


def test_ljperf_says_the_version_of_its_pyproject() -> None:
    from lj_image.catalog.project import read_project

    folder = ROOT / "images/training-nv-pytorch/ljperf"
    text = (folder / "src/ljperf/__init__.py").read_text()
    assert f'__version__ = "{read_project(folder).version}"' in text
