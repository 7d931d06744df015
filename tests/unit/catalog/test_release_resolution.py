from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.description import origin
from lj_image.catalog.release import ArchiveSource, PipSource, Platform
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import ManifestError, UsageError
from samples.tiny import IMAGE, RELEASE

Write = Callable[..., Catalog]


def configured(config: Config) -> Config:
    source = Source(url="https://vendor.example/simple")
    values = ConfigFile(indexes={"vendor": source}, archives={"library": source})
    return Config(file=None, values=values, cache_dir=config.cache_dir)


def test_a_release_knows_its_tag_base_and_components_in_layer_order(write_catalog: Write, config: Config) -> None:
    release = resolve(write_catalog(), configured(config), "25.02")

    assert (release.variant, release.tag) == ("vendor", "25.02-vendor")
    assert release.base.name == "registry.example/base:12"
    assert [item.id for item in release.components] == ["runtime", "kit", "tool", "library"]
    assert isinstance(release.components[3].source, ArchiveSource)
    assert release.components[3].source.file == "library-2.23.4.11-amd64.tar.gz"


def test_a_stand_in_is_named_and_has_a_version_and_no_features_of_its_own(write_catalog: Write, config: Config) -> None:
    library = resolve(write_catalog(), config, "25.02", variant="open").components[3]

    assert (library.version, library.installed_version) == ("2.23.4.11", "2.23.4")
    assert str(library.stands_in_for) == "the library"
    assert library.features == ()


def test_a_component_of_several_distributions_takes_those_of_its_version(write_catalog: Write, config: Config) -> None:
    kit = resolve(write_catalog(), config, "25.02", variant="open").components[1]
    assert isinstance(kit.source, PipSource)
    assert kit.source.distributions == (("kit-core", "12.8.57"), ("kit-extra", "12.8.61"))


def test_a_component_of_another_architecture_is_left_out(write_catalog: Write, config: Config) -> None:
    catalog = write_catalog(r25_02=RELEASE + "architectures: [amd64, arm64]\n")
    arm64 = Platform("linux", "arm64")
    release = resolve(catalog, config, "25.02", variant="vendor", platform=arm64, base_known=False)
    assert [item.id for item in release.components] == ["runtime", "kit", "tool"]
    assert release.key == "25.02-vendor-arm64"


def test_the_first_configured_variant_is_taken_and_the_reason_is_told(write_catalog: Write, config: Config) -> None:
    catalog = write_catalog()
    release = resolve(catalog, config, "25.02")
    assert release.variant == "open"
    assert release.variant_reason == "vendor is not: the config has no archives.library, indexes.vendor"
    assert resolve(catalog, configured(config), "25.02").variant == "vendor"


def test_an_heir_says_only_what_differs(write_catalog: Write, config: Config) -> None:
    heir = 'release: "25.03"\nprevious: "25.02"\ncomponents: {Tool: 1.5.0}\nunlisted: [kit]\n'
    release = resolve(write_catalog(r25_03=heir), config, "25.03", variant="open")
    assert {item.id: item.version for item in release.components} == {
        "runtime": "3.11.2",
        "tool": "1.5.0",
        "library": "2.23.4.11",
    }
    assert release.tag == "25.03-tool1.5"
    assert release.base.name == "registry.example/base:12"


def test_a_version_can_be_tried_without_editing(write_catalog: Write, config: Config) -> None:
    release = resolve(write_catalog(), config, "25.02", variant="open", overridden={"tool": "1.9"})
    assert release.component("tool").version == "1.9"  # type: ignore[union-attr]
    assert release.overridden == {"tool": "1.9"}


@pytest.mark.parametrize(
    ("heir", "message", "at"),
    [
        ('release: "25.03"\nprevious: "25.03"\n', "inherits from itself", "25.03.yaml:2:11"),
        ('release: "25.03"\nprevious: "24.01"\n', "'24.01' is no release of tiny", "25.03.yaml:2:11"),
        ('release: "25.04"\n', "the file is named 25.03.yaml, but its release is '25.04'", "25.03.yaml:1:10"),
        ('release: "25.03"\ncomponents: {tol: "1"}\n', "unknown component 'tol'", "25.03.yaml:2:14"),
        ('release: "25.03"\ncomponents: {tool: "1", Tool: "2"}\n', "are the same component", "25.03.yaml:2:25"),
    ],
)
def test_an_impossible_release_is_refused_with_its_place(
    write_catalog: Write, config: Config, heir: str, message: str, at: str
) -> None:
    with pytest.raises(ManifestError, match=message) as caught:
        resolve(write_catalog(r25_03=heir), config, "25.03", variant="open")
    assert str(caught.value.location).endswith(at)


def test_a_component_without_a_source_in_the_variant_says_what_to_add(write_catalog: Write, config: Config) -> None:
    image = IMAGE.replace("      open: {kind: base, probe: python}\n", "")
    with pytest.raises(ManifestError, match="'runtime' has no source in the variant 'open'") as caught:
        resolve(write_catalog(image=image), config, "25.02", variant="open")
    assert str(caught.value.location).endswith("25.02.yaml:4:3")
    assert "components.runtime.sources" in (caught.value.hint or "")


def test_a_version_that_nobody_wrote_wheels_for_is_refused(write_catalog: Write, config: Config) -> None:
    release = RELEASE.replace('"12.8"', '"12.9"')
    with pytest.raises(ManifestError, match=r"nobody wrote down which distributions make 12\.9"):
        resolve(write_catalog(r25_02=release), config, "25.02", variant="open")


def test_an_unavailable_variant_says_why(write_catalog: Write, config: Config) -> None:
    release = RELEASE + "variants: {open: {unavailable: nobody published it}}\n"
    with pytest.raises(ManifestError, match="nobody published it"):
        resolve(write_catalog(r25_02=release), config, "25.02", variant="open")


def test_an_unknown_release_or_variant_names_the_closest(write_catalog: Write, config: Config) -> None:
    catalog = write_catalog()
    with pytest.raises(UsageError) as caught:
        resolve(catalog, config, "25.2")
    assert caught.value.hint == "did you mean 25.02?"
    with pytest.raises(UsageError) as caught:
        resolve(catalog, config, "tiny/25.02", variant="opn")
    assert caught.value.hint == "did you mean open?"


def test_a_release_is_made_for_the_architectures_that_it_names(write_catalog: Write, config: Config) -> None:
    with pytest.raises(ManifestError, match=r"25\.02 is not made for arm64") as caught:
        resolve(write_catalog(), config, "25.02", variant="vendor", platform=Platform("linux", "arm64"))

    assert "architectures of this release: amd64" in str(caught.value.hint)


HEIR = 'release: "25.04"\nprevious: "25.03"\ninherits: "25.02"\ncomponents: {tool: 1.5.0}\n'


def test_a_release_inherits_from_another_than_the_one_before_it(write_catalog: Write, config: Config) -> None:
    release = resolve(write_catalog(r25_04=HEIR), config, "25.04", variant="vendor", only_configured=False)

    assert (release.previous, release.inherits) == ("25.03", "25.02")
    assert {item.id: item.version for item in release.components}["kit"] == "12.8"


def test_a_release_cannot_inherit_from_nothing(write_catalog: Write, config: Config) -> None:
    lost = HEIR.replace('inherits: "25.02"\n', "")
    with pytest.raises(ManifestError, match=r"previous: '25\.03' is no release of tiny") as caught:
        resolve(write_catalog(r25_04=lost), config, "25.04", variant="vendor")

    assert caught.value.location is not None
    assert caught.value.location.line == 2
    assert "`inherits:` one that has" in str(caught.value.hint)


def test_a_component_can_be_left_out_of_a_variant_with_its_reason(write_catalog: Write, config: Config) -> None:
    image = IMAGE.replace(
        "      open: {kind: pip, distribution: lib-open",
        "    left_out:\n      open: {en: not public, zh: 未公开}\n    x: {kind: pip, distribution: lib-open",
    )
    image = "\n".join(line for line in image.splitlines() if not line.startswith("    x:")) + "\n"
    release = resolve(write_catalog(image), config, "25.02", variant="open")

    assert "library" not in [item.id for item in release.components]
    assert [(item.id, item.version, item.reason.in_("zh")) for item in release.left_out] == [
        ("library", "2.23.4.11", "未公开")
    ]
    assert release.tag == "25.02-tool1.4"


def test_a_short_driver_keeps_the_lists_of_the_release_before(write_catalog: Write, config: Config) -> None:
    first = RELEASE + 'driver: {requires: ">=570", data_centre: {R535: "535.86"}, refused: [R530]}\n'
    heir = 'release: "25.03"\nprevious: "25.02"\ndriver: ">=575"\n'
    catalog = write_catalog(r25_02=first, r25_03=heir)
    release = resolve(catalog, config, "25.03", variant="vendor", only_configured=False)

    assert release.driver is not None
    assert release.driver.requires == ">=575"
    assert release.driver.data_centre == (("R535", "535.86"),)
    assert release.driver.refused == ("R530",)


def test_a_release_knows_how_commands_ask_for_it(write_catalog: Write, config: Config) -> None:
    catalog = write_catalog()
    assert resolve(catalog, config, "25.02", variant="open").asked_as == "25.02"
    sister = catalog.root / "sister"
    (sister / "releases").mkdir(parents=True)
    (sister / "image.yaml").write_text(IMAGE.replace("image: tiny", "image: sister"))
    (sister / "releases" / "25.02.yaml").write_text(RELEASE)
    assert resolve(Catalog(catalog.root), config, "tiny/25.02", variant="open").asked_as == "tiny/25.02"


def with_extras(extras: str, image: str = IMAGE) -> str:
    return image.replace("imports: tool}", f"imports: tool, extras: {extras}}}")


def test_extras_are_normalised_and_each_is_named_once(write_catalog: Write, config: Config) -> None:
    catalog = write_catalog(image=with_extras("[Speed_Up, default, speed.up]"))
    tool = resolve(catalog, config, "25.02", variant="open").component("tool")
    assert tool is not None
    assert isinstance(tool.source, PipSource)
    assert tool.source.extras == ("default", "speed-up")
    assert origin(tool) == "pypi: tool[default,speed-up]"


@pytest.mark.parametrize("name", ['"-x"', '"a b"', '"a,b"', '""', '"a]"'])
def test_a_name_that_no_extra_can_have_is_refused_with_its_place(
    write_catalog: Write, config: Config, name: str
) -> None:
    with pytest.raises(ManifestError, match="is not written as it should be") as caught:
        resolve(write_catalog(image=with_extras(f"[ok, {name}]")), config, "25.02", variant="open")
    assert "image.yaml:38:" in str(caught.value.location)


def test_extras_beside_several_distributions_are_refused_with_their_place(write_catalog: Write, config: Config) -> None:
    image = IMAGE.replace("        overrides: true\n", "        overrides: true\n        extras: [default]\n")
    with pytest.raises(ManifestError, match="'kit': extras belong to one distribution") as caught:
        resolve(write_catalog(image=image), config, "25.02", variant="open")
    assert "image.yaml:31:" in str(caught.value.location)
