"""What a person names, and the two things that are meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from diff_archives import distribution, docker_save, tar_of
from diff_catalog import NEXT, Bench

from lj_image.catalog.catalog import Catalog
from lj_image.config import Config
from lj_image.errors import EngineError, ManifestError, UsageError
from lj_image.oci.layout import Layout
from lj_image.release.diff.revisions import resolver_in
from lj_image.release.diff.sides import Ground, Named, Wanted, diff_named, named
from samples.tiny import IMAGE, RELEASE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_engine() -> None:
    raise EngineError("no engine answers")


def ground(catalog: Catalog, config: Config) -> Ground:
    return Ground(config, resolver_in(catalog.root, config), lambda: catalog.root, no_engine, lambda _: None)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25.02", Named("release", "25.02")),
        ("training-nv-pytorch/25.02", Named("release", "training-nv-pytorch/25.02")),
        ("25.02@main", Named("release", "25.02", "main")),
        ("tiny/25.02@origin/feature", Named("release", "tiny/25.02", "origin/feature")),
        ("25.02@HEAD@{1}", Named("release", "25.02", "HEAD@{1}")),
        ("tiny:25.02-open", Named("image", "tiny:25.02-open")),
        ("localhost:5000/team/tiny:25.02", Named("image", "localhost:5000/team/tiny:25.02")),
        ("sha256:abc", Named("image", "sha256:abc")),
        ("team/tiny@sha256:abc", Named("image", "team/tiny@sha256:abc")),
        ("debian", Named("image", "debian")),
        ("saved.tar", Named("archive", "saved.tar")),
        ("./layout", Named("archive", "./layout")),
        ("/srv/layout", Named("archive", "/srv/layout")),
        ("~/layout", Named("archive", "~/layout")),
        ("layout/", Named("archive", "layout/")),
        ("layout", Named("archive", "layout")),
    ],
)
def test_the_form_of_a_name_says_what_it_is(text: str, expected: Named, folder: Path) -> None:
    (folder / "layout").mkdir()
    assert named(text) == expected


def test_a_layout_is_an_archive_also_where_its_path_could_be_a_release(folder: Path) -> None:
    Layout.create(folder / "build/25.02")
    assert named("build/25.02") == Named("archive", "build/25.02")
    assert named("build/25.03") == Named("release", "build/25.03")


def test_nothing_named_is_told() -> None:
    with pytest.raises(UsageError, match="nothing is named"):
        named("")


def test_a_release_that_is_not_there_names_the_closest(write_catalog: Callable[..., Catalog], config: Config) -> None:
    with pytest.raises(UsageError, match=r"25\.20") as raised:
        diff_named("25.02", "25.20", ground(write_catalog(), config), Wanted("open"))
    assert "25.02" in str(raised.value.hint)


def test_an_archive_that_is_not_there_is_told(write_catalog: Callable[..., Catalog], config: Config) -> None:
    with pytest.raises(UsageError, match=r"no file gone\.tar") as raised:
        diff_named("25.02", "gone.tar", ground(write_catalog(), config), Wanted("open"))
    assert "25.02@REVISION" in str(raised.value.hint)


def test_an_image_needs_an_engine(write_catalog: Callable[..., Catalog], config: Config) -> None:
    with pytest.raises(EngineError):
        diff_named("25.02", "tiny:25.02-open", ground(write_catalog(), config), Wanted("open"))


UNAVAILABLE = 'release: "25.03"\nprevious: "25.02"\nvariants: {%s: {unavailable: not public}}\n'


@pytest.mark.parametrize(("older", "newer"), [("25.02", "25.03"), ("25.03", "25.02")])
def test_without_a_variant_one_is_taken_that_both_have(
    older: str, newer: str, write_catalog: Callable[..., Catalog], config: Config
) -> None:
    catalog = write_catalog(r25_03=UNAVAILABLE % "open")
    found = diff_named(older, newer, ground(catalog, config), Wanted())
    assert (found.before.variant, found.after.variant) == ("vendor", "vendor")


def test_when_there_is_none_that_both_have_it_is_told(write_catalog: Callable[..., Catalog], config: Config) -> None:
    catalog = write_catalog(r25_02=RELEASE + "variants: {vendor: {unavailable: gone}}\n", r25_03=UNAVAILABLE % "open")
    with pytest.raises(ManifestError, match="cannot be had in the variant"):
        diff_named("25.02", "25.03", ground(catalog, config), Wanted())


@pytest.mark.parametrize(("before", "after"), [("tiny/25.02", "25.03"), ("25.02", "tiny/25.03"), ("25.01", "25.03")])
def test_a_name_of_several_families_is_meant_in_that_of_the_other_one(
    before: str, after: str, write_catalog: Callable[..., Catalog], config: Config
) -> None:
    catalog = write_catalog(r25_01=RELEASE.replace("25.02", "25.01"), r25_03=NEXT)
    other = catalog.root / "small"
    (other / "releases").mkdir(parents=True)
    (other / "image.yaml").write_text(IMAGE.replace("image: tiny", "image: small"))
    for name in ("25.02", "25.03"):
        (other / "releases" / f"{name}.yaml").write_text(RELEASE.replace("25.02", name))
    found = diff_named(before, after, ground(Catalog(catalog.root), config), Wanted("open"))
    assert (found.before.image, found.after.image) == ("tiny", "tiny")
    with pytest.raises(UsageError, match="several images"):
        diff_named("25.02", "25.03", ground(Catalog(catalog.root), config), Wanted("open"))


def test_a_base_that_nobody_asked_yet_leaves_the_components(
    write_catalog: Callable[..., Catalog], config: Config
) -> None:
    catalog = write_catalog(r25_03=NEXT)
    (catalog.root / "tiny" / "bases" / "base.yaml").unlink()
    found = diff_named("25.02", "25.03", ground(catalog, config), Wanted("open"))
    assert [item.id for item in found.components or ()] == ["tool", "library"]
    assert "25.02: nothing is known of its base base, so its components alone are compared" in found.notes


def test_a_release_is_held_against_an_archive_of_its_image(
    write_catalog: Callable[..., Catalog], config: Config, folder: Path
) -> None:
    made = Bench(write_catalog(r25_03=NEXT), config)
    made.lock("25.02")
    labels = {"io.lj-image.image": "tiny", "io.lj-image.release": "25.02", "io.lj-image.variant": "open"}
    layer = tar_of({**distribution("tool", "1.4.0"), **distribution("lib-open", "2.23.4"), **distribution("six", "1")})
    docker_save(folder / "saved.tar", [layer], labels)
    found = diff_named("25.02", "saved.tar", ground(made.catalog, config), Wanted(files=True))
    assert found.before.variant == "open"  # the archive's, since nobody named one
    assert [(item.id, item.kind, item.after) for item in found.components or ()] == [("tool", "down", "1.4.0")]
    kinds = {item.name: item.kind for item in found.distributions or ()}
    assert kinds["tool"] == "down"
    assert kinds["six"] == "added"
    assert (found.layers, found.files) == (None, None)
