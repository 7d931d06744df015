"""Which variant is taken for a platform: one on a base of ours is for that base's architecture alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Platform
from lj_image.catalog.resolve import resolve
from lj_image.catalog.selection import buildable
from lj_image.catalog.variants import base_of_ours
from lj_image.cli import run
from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import ManifestError
from samples.tiny import BASE, IMAGE, RELEASE

Write = Callable[..., Catalog]

ARM64 = Platform("linux", "arm64")
BOTH = RELEASE + "architectures: [amd64, arm64]\n"
OUR_BASE = """\
image: our-base
title: ours
bootstrap: {suite: stable, architecture: amd64, include: [python3], source_date_epoch: 0}
"""
ON_OUR_BASE = "    base: {image: our-base, facts: base}\n    protected: [torch]\ncomponents:\n"
REFERENCE = '    base: {reference: "registry.example/base:{os}", facts: base}\n    protected: [torch]\ncomponents:\n'


def on_our_base(write_catalog: Write, release: str = BOTH) -> Catalog:
    """Return a catalog whose `open` stands on a base of ours, made for amd64; `vendor` stands on a reference."""
    catalog = write_catalog(image=IMAGE.replace(REFERENCE, ON_OUR_BASE), r25_02=release)
    (catalog.root / "our-base").mkdir()
    (catalog.root / "our-base" / "image.yaml").write_text(OUR_BASE)
    (catalog.root / "tiny" / "bases" / "base-arm64.yaml").write_text(BASE.replace("amd64", "arm64"))
    return Catalog(catalog.root)


def vendors(config: Config) -> Config:
    source = Source(url="https://vendor.example/simple")
    return Config(None, ConfigFile(indexes={"vendor": source}, archives={"library": source}), config.cache_dir)


def test_a_variant_on_a_base_for_another_architecture_is_passed_over_with_its_reason(
    write_catalog: Write, config: Config
) -> None:
    catalog = on_our_base(write_catalog)
    assert resolve(catalog, config, "25.02").variant == "open"
    found = resolve(catalog, config, "25.02", platform=ARM64, only_configured=False)
    assert found.variant == "vendor"
    assert found.variant_reason == (
        "vendor is not: the config has no archives.library, indexes.vendor; open is not: our-base is made for amd64"
    )


def test_when_no_variant_is_for_the_platform_each_one_says_why(write_catalog: Write, config: Config) -> None:
    with pytest.raises(ManifestError, match=r"no variant of 25\.02") as caught:
        resolve(on_our_base(write_catalog), config, "25.02", platform=ARM64)
    assert (caught.value.hint or "").splitlines() == [
        "vendor is not: the config has no archives.library, indexes.vendor",
        "open is not: our-base is made for amd64",
    ]


def test_a_variant_asked_for_on_a_base_for_another_architecture_names_the_others(
    write_catalog: Write, config: Config
) -> None:
    with pytest.raises(ManifestError, match="our-base is made for amd64, not for arm64") as caught:
        resolve(on_our_base(write_catalog), config, "25.02", variant="open", platform=ARM64)
    assert caught.value.hint == "variants of 25.02 for linux/arm64: vendor"


def test_a_release_not_made_for_the_platform_says_so_before_any_variant_is_chosen(
    write_catalog: Write, config: Config
) -> None:
    with pytest.raises(ManifestError, match=r"25\.02 is not made for arm64"):
        resolve(on_our_base(write_catalog, RELEASE), config, "25.02", platform=ARM64)


def test_a_release_knows_the_variants_that_are_for_its_platform(write_catalog: Write, config: Config) -> None:
    catalog = on_our_base(write_catalog)
    assert resolve(catalog, config, "25.02", variant="vendor").offered == ("vendor", "open")
    assert resolve(catalog, config, "25.02", variant="vendor", platform=ARM64).offered == ("vendor",)


@pytest.mark.parametrize(
    ("release", "platform", "expected"),
    [
        (BOTH, Platform(), ["25.02-vendor", "25.02-open"]),
        (BOTH, ARM64, ["25.02-vendor-arm64"]),
        (RELEASE, ARM64, []),
    ],
)
def test_over_the_whole_catalog_only_what_is_for_the_platform_can_be_built(
    release: str, platform: Platform, expected: list[str], write_catalog: Write, config: Config
) -> None:
    found = buildable(on_our_base(write_catalog, release), vendors(config), None, None, platform)
    assert [item.key for item in found] == expected


def test_a_base_of_ours_that_nobody_knows_is_told_when_the_variant_is_resolved(
    write_catalog: Write, config: Config
) -> None:
    catalog = write_catalog(image=IMAGE.replace(REFERENCE, ON_OUR_BASE))
    assert base_of_ours(catalog, catalog.family("tiny"), "open") is None
    with pytest.raises(ManifestError, match="'our-base' is no base of ours"):
        resolve(catalog, config, "25.02")


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ([], "no release can be had for linux/arm64 with this config: nothing to do"),
        (["25.02"], "open is not: our-base is made for amd64"),
    ],
)
def test_lock_with_a_platform_says_why_it_has_nothing_to_check(
    release: list[str],
    said: str,
    write_catalog: Write,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = on_our_base(write_catalog).root
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(config.cache_dir))
    monkeypatch.setenv("LJ_IMAGE_CONFIG", str(root / "config.yaml"))
    (root / "config.yaml").write_text("{}\n")
    code = run(["--images", str(root), "lock", *release, "--check", "--platform", "linux/arm64"])
    assert code == (2 if release else 0)
    assert said in capsys.readouterr().err
