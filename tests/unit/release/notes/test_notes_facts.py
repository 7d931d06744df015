"""What a note tells follows from the manifests and the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from notes_records import DIGEST, IMAGE_ID, record_of

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import LjImageError, ManifestError, VerificationError
from lj_image.release.notes import NoteFacts, note_facts
from lj_image.snapshot import Snapshots
from samples.tiny import IMAGE

Facts = Callable[..., NoteFacts]
NEXT = 'release: "25.03"\nprevious: "25.02"\n'
FOUND = {"runtime": "3.11.2", "tool": "1.4.2+ali", "library": "2.23.4"}


TWO_ARCHITECTURES = """\
release: "25.02"
base: {os: "12"}
architectures: [amd64, arm64]
components:
  runtime: 3.11.2
  kit: "12.8"
  tool: 1.4.2+ali
  library: {version: 2.23.4.11, features: [fast]}
"""


def lines(facts: NoteFacts) -> list[tuple[str, str, str | None, str | None]]:
    return [(line.id, line.kind, line.before, line.after) for line in facts.changes]


def with_notes(image: str) -> str:
    return image.replace("namespace: team\n", "namespace: team\nnotes: {product: The Product, scenario: Training}\n")


def test_without_a_release_before_the_components_are_listed_in_layer_order(tiny_facts: Facts) -> None:
    facts = tiny_facts()
    assert (facts.compared_with, facts.previous) == (None, None)
    assert lines(facts) == [
        ("runtime", "listed", None, "3.11.2"),
        ("kit", "listed", None, "12.8"),
        ("tool", "listed", None, "1.4.2+ali"),
        ("library", "listed", None, "2.23.4.11"),
    ]
    assert facts.changes[3].features == ("fast",)


def test_changes_are_those_to_the_release_that_it_inherits_from(tiny_facts: Facts) -> None:
    file = NEXT + (
        "components:\n"
        "  tool: 1.4.2+other\n"
        "  kit: '12.7'\n"
        "  library: {version: 2.23.4.12}\n"
        "unlisted: [runtime]\n"
        "base: {os: '13'}\n"
    )
    facts = tiny_facts(release="25.03", r25_03=file)
    assert facts.compared_with == "25.02"
    assert lines(facts) == [
        ("runtime", "removed", "3.11.2", None),
        ("kit", "down", "12.8", "12.7"),
        ("tool", "rebuilt", "1.4.2+ali", "1.4.2+other"),
        ("library", "up", "2.23.4.11", "2.23.4.12"),
    ]
    assert [(entry.name, entry.before, entry.after) for entry in facts.base.moved] == [("OS", "12", "13")]


def test_a_component_that_is_new_is_added(tiny_facts: Facts) -> None:
    first = 'release: "25.02"\nbase: {os: "12"}\ncomponents: {runtime: 3.11.2}\n'
    facts = tiny_facts(release="25.03", r25_02=first, r25_03=NEXT + 'components: {kit: "12.8"}\n')
    assert lines(facts) == [("kit", "added", None, "12.8")]
    assert facts.base.moved == ()


def test_a_lower_version_is_told_with_its_reason(tiny_facts: Facts) -> None:
    file = NEXT + 'components: {kit: {version: "12.7", downgrade: {en: a fault of 12.8, zh: 12.8 有缺陷}}}\n'
    [line] = tiny_facts(release="25.03", r25_03=file).changes
    assert line.kind == "down"
    assert line.reason is not None
    assert line.reason.in_("zh") == "12.8 有缺陷"


def test_a_reason_is_not_told_again_when_the_version_goes_up(tiny_facts: Facts) -> None:
    file = NEXT + 'components: {kit: {version: "12.9", downgrade: once lower}}\n'
    [line] = tiny_facts(release="25.03", r25_03=file).changes
    assert (line.kind, line.reason) == ("up", None)


def test_what_a_person_tells_is_not_derived_a_second_time(tiny_facts: Facts) -> None:
    file = NEXT + (
        'components: {kit: "12.9", library: 2.23.4.12}\n'
        "highlights:\n  - {en: The kit is faster., zh: kit 更快。, components: [kit]}\n"
    )
    facts = tiny_facts(release="25.03", r25_03=file)
    assert [line.id for line in facts.changes] == ["library"]
    assert [line.highlight.text.en for line in facts.highlights] == ["The kit is faster."]


def test_next_to_a_highlight_stands_what_the_variant_has_instead(tiny_facts: Facts) -> None:
    image = with_notes(
        IMAGE.replace(
            '      open: {kind: pip, version: "{version:public}", imports: tool}\n',
            "    left_out: {open: {en: nobody has it, zh: 没有}}\n",
        )
    )
    file = NEXT + "highlights:\n  - {en: Both are new., components: [tool, library]}\n"
    facts = tiny_facts(release="25.03", variant="open", image=image.replace("{tool:major.minor}", "x"), r25_03=file)
    [line] = facts.highlights
    [stand_in] = line.stand_ins
    assert (stand_in.distribution, stand_in.version, str(stand_in.stands_in_for)) == (
        "lib-open",
        "2.23.4",
        "the library",
    )
    assert [(item.title, str(item.reason)) for item in line.left_out] == [("Tool", "nobody has it")]
    assert "tool" not in [row.id for row in facts.contents]
    assert [item.id for item in facts.left_out] == ["tool"]


def test_a_release_that_was_published_before_and_has_no_file_is_named(tiny_facts: Facts) -> None:
    file = 'release: "25.07"\nprevious: "25.06"\ninherits: "25.02"\n'
    facts = tiny_facts(release="25.07", r25_07=file)
    assert (facts.compared_with, facts.previous) == ("25.02", "25.06")


def test_a_variant_is_compared_with_the_last_release_that_it_has(tiny_facts: Facts) -> None:
    middle = NEXT + 'components: {tool: "2.0"}\nvariants: {open: {unavailable: not public}}\n'
    last = 'release: "25.04"\nprevious: "25.03"\ncomponents: {tool: "1.5"}\n'
    releases = {"r25_03": middle, "r25_04": last}
    vendor = tiny_facts(release="25.04", variant="vendor", **releases)
    assert (vendor.compared_with, lines(vendor)) == ("25.03", [("tool", "down", "2.0", "1.5")])
    public = tiny_facts(release="25.04", variant="open", **releases)
    assert (public.compared_with, lines(public)) == ("25.02", [("tool", "up", "1.4.2+ali", "1.5")])


def test_each_architecture_has_its_column(tiny_facts: Facts) -> None:
    facts = tiny_facts(r25_02=TWO_ARCHITECTURES)
    assert facts.architectures == ("amd64", "arm64")
    cells = {row.id: [cell and cell.version for cell in row.cells] for row in facts.contents}
    assert cells["tool"] == ["1.4.2+ali", "1.4.2+ali"]
    assert cells["library"] == ["2.23.4.11", None]


def test_addresses_have_placeholders_and_an_explanation(tiny_facts: Facts) -> None:
    assets = tiny_facts().assets
    assert assets.public.reference == "public.example/team/tiny:25.02-vendor"
    assert assets.vpc == "vpc.{region-id}.example/team/{image:tag}"
    assert assets.example_regions == ("north", "south")


def test_without_a_record_the_note_is_planned(tiny_facts: Facts) -> None:
    assert tiny_facts().to_json()["status"] == "planned"


@pytest.mark.parametrize("state", [{"built": None}, {"verified": None}])
def test_a_record_that_proves_nothing_leaves_the_note_planned(tiny_facts: Facts, state: dict[str, Any]) -> None:
    record = replace(record_of("tiny", "25.02", "vendor", FOUND), **state)
    facts = tiny_facts(record)
    assert facts.evidence is None
    assert facts.assets.published == ()


def test_a_proof_of_the_image_before_does_not_count(tiny_facts: Facts) -> None:
    record = record_of("tiny", "25.02", "vendor", FOUND, (("public.example/team/tiny:25.02-vendor", None),))
    assert record.built is not None
    newer = replace(record, built=replace(record.built, image_id="sha256:" + "9" * 64))
    facts = tiny_facts(newer)
    assert (facts.evidence, facts.assets.public.digest) == (None, None)


def test_a_verified_note_tells_what_was_found_and_where_it_is(tiny_facts: Facts) -> None:
    pushed = (("public.example/team/tiny:25.02-vendor", None), ("vpc.south.example/team/tiny:25.02-vendor", "south"))
    facts = tiny_facts(record_of("tiny", "25.02", "vendor", FOUND, pushed))
    assert facts.evidence is not None
    assert (facts.evidence.image_id, facts.evidence.checks) == (IMAGE_ID, 12)
    assert facts.assets.public.digest == DIGEST
    assert [(item.region, item.digest) for item in facts.assets.published] == [("south", DIGEST)]


def test_a_library_that_says_less_than_the_promise_does_not_take_it_back(tiny_facts: Facts) -> None:
    facts = tiny_facts(record_of("tiny", "25.02", "vendor", FOUND))
    library = facts.component("library")
    assert library is not None
    assert (library.cells[0].version, library.reported) == ("2.23.4.11", "2.23.4")  # type: ignore[union-attr]


def test_a_version_that_says_more_than_the_promise_is_told(tiny_facts: Facts) -> None:
    facts = tiny_facts(record_of("tiny", "25.02", "vendor", FOUND | {"kit": "12.8+local"}))
    assert facts.version("kit") == "12.8+local"


def test_a_component_of_several_distributions_keeps_its_own_version(tiny_facts: Facts) -> None:
    assert tiny_facts(variant="open").version("kit") == "12.8"  # and not 12.8.57, which is one of its parts


@pytest.mark.parametrize(
    ("identity", "named"),
    [
        (("other", "25.02", "vendor"), "other 25.02-vendor"),
        (("tiny", "25.01", "vendor"), "tiny 25.01-vendor"),
        (("tiny", "25.02", "open"), "tiny 25.02-open"),
    ],
)
def test_the_record_of_another_image_is_refused(tiny_facts: Facts, identity: tuple[str, str, str], named: str) -> None:
    with pytest.raises(VerificationError) as caught:
        tiny_facts(record_of(*identity, FOUND))
    assert named in caught.value.message
    assert "tiny 25.02-vendor" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"tool": "1.4.3+ali"}, "it holds Tool 1.4.3+ali, the release 1.4.2+ali"),
        ({"gone": "1"}, "it holds gone 1, which the release has not"),
    ],
)
def test_a_record_whose_versions_are_not_the_releases_is_refused(
    tiny_facts: Facts, found: dict[str, str], words: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        tiny_facts(record_of("tiny", "25.02", "vendor", FOUND | found))
    assert words in caught.value.message
    assert "lj-image build tiny/25.02 --variant vendor" in str(caught.value.hint)


def test_a_family_without_notes_says_what_to_add(tiny_facts: Facts) -> None:
    with pytest.raises(ManifestError) as caught:
        tiny_facts(image=IMAGE)
    assert "tiny has no notes" in caught.value.message
    assert "notes: {product" in str(caught.value.hint)
    assert str(caught.value.location).endswith("tiny/image.yaml:1:1")


def test_facts_for_machines_name_no_place_of_this_machine(tiny_facts: Facts) -> None:
    told = tiny_facts().to_json()
    assert "texts" not in told
    assert told["product"] == {"en": "The Product", "zh": "产品"}
    assert told["changes"][0]["title"] == "Runtime"


def test_what_the_manifests_said_is_remembered_until_one_changes(
    tiny: Callable[..., tuple[Catalog, Release]], config: Config
) -> None:
    snapshots = Snapshots(config.cache_dir / "snapshots")
    catalog, release = tiny()
    first = note_facts(catalog, config, release, None, snapshots)
    assert note_facts(Catalog(catalog.root), config, release, None, snapshots) == first

    topics = catalog.root / "tiny/notes/topics.yaml"
    topics.parent.mkdir()
    topics.write_text("contents: {tag: true}\n")
    assert note_facts(Catalog(catalog.root), config, release, None, snapshots).tag_row


def test_an_error_of_the_manifests_is_not_remembered(
    tiny: Callable[..., tuple[Catalog, Release]], config: Config
) -> None:
    snapshots = Snapshots(config.cache_dir / "snapshots")
    catalog, release = tiny(image=IMAGE)
    for _ in range(2):
        with pytest.raises(LjImageError):
            note_facts(catalog, config, release, None, snapshots)


RUN_TOOL = """\
        kind: run
        commands: [install-tool]
        check: cat /etc/tool
        expect: "tool {version}"
"""


@pytest.mark.parametrize("printed", ["", "tool 1.4.2+ali"])
def test_what_a_command_printed_is_no_version(tiny_facts: Facts, printed: str) -> None:
    image = with_notes(IMAGE).replace("vendor: {kind: pip, index: vendor}", f"vendor:\n{RUN_TOOL.rstrip()}")
    facts = tiny_facts(record_of("tiny", "25.02", "vendor", FOUND | {"tool": printed}), image=image)

    assert facts.evidence is not None
    assert facts.version("tool") == "1.4.2+ali"
