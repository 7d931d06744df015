"""The comparison itself, on contents made up here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from lj_image.catalog.text import Text
from lj_image.release.diff.compare import Diff, diff
from lj_image.release.diff.contents import Contents, Distribution, FileFact, LayerFact, Listing, Part

MIB = 1024 * 1024


@dataclass
class Known:
    """Details that are all there; `asked` shows what was looked up."""

    stated: Mapping[str, str] = field(default_factory=dict)
    listed: Mapping[str, FileFact] = field(default_factory=dict)
    not_listed: frozenset[str] = frozenset()
    text: str | None = None
    asked: list[str] = field(default_factory=list)

    def licences(self, names: Iterable[str]) -> Mapping[str, str]:
        names = list(names)
        self.asked += names
        return {name: self.stated[name] for name in names if name in self.stated}

    def unlisted(self, names: Iterable[str]) -> frozenset[str]:
        return self.not_listed.intersection(names)

    def files(self, names: Iterable[str]) -> Listing:
        return Listing(self.listed)

    def dockerfile(self) -> str | None:
        return self.text


def contents(name: str = "1", **changes: object) -> Contents:
    side = Contents(f"image {name}", name, "release", "linux/amd64", Known(), base="base:1")
    return replace(side, **changes)  # type: ignore[arg-type]


def with_parts(**versions: str | Part) -> Contents:
    parts = {
        name: Part(name.title(), version) if isinstance(version, str) else version for name, version in versions.items()
    }
    return contents(components=parts)


def with_distributions(known: Known | None = None, *, complete: bool = True, **versions: str) -> Contents:
    found = {name: Distribution(name, version, "tool") for name, version in versions.items()}
    return contents(distributions=found, complete=complete, details=known or Known())


def layers(*sized: tuple[str, int | None]) -> tuple[LayerFact, ...]:
    return tuple(LayerFact(f"sha256:{name}", name, size) for name, size in sized)


def component_kinds(found: Diff) -> dict[str, str]:
    return {item.id: item.kind for item in found.components or ()}


def test_each_way_to_change_is_told_in_the_order_of_the_newer_one() -> None:
    before = with_parts(gone="1", cuda="12.8.0", ray="2.44.0", flash="2.3.0+aaa", same="1.0")
    after = with_parts(flash="2.3.0+bbb", ray="2.43.0", cuda="12.8.1", new="1", same="1.0")
    assert list(component_kinds(diff(before, after)).items()) == [
        ("flash", "rebuilt"),
        ("ray", "down"),
        ("cuda", "up"),
        ("new", "added"),
        ("gone", "removed"),
    ]


def test_a_downgrade_gives_its_release_s_reason_and_nothing_else_does() -> None:
    before = with_parts(ray="2.44.0", vllm="0.8.4", cuda="12")
    reason = Text("vLLM refuses 2.44", "vLLM 不支持 2.44")
    after = with_parts(ray=Part("Ray", "2.43.0", reason), vllm="0.8.3", cuda=Part("CUDA", "13", reason))
    reasons = {item.id: item.reason for item in diff(before, after).components or ()}
    assert reasons == {"ray": "vLLM refuses 2.44", "vllm": None, "cuda": None}


def test_licences_are_looked_up_for_what_changed_alone() -> None:
    old, new = Known({"six": "MIT", "kept": "MIT"}), Known({"six": "Apache-2.0", "fresh": "BSD", "kept": "MIT"})
    found = diff(
        with_distributions(old, six="1", kept="1", gone="1"), with_distributions(new, six="2", kept="1", fresh="1")
    )
    assert [(item.name, item.licence_before, item.licence_after) for item in found.licences] == [
        ("six", "MIT", "Apache-2.0")
    ]
    assert (sorted(old.asked), sorted(new.asked)) == (["six"], ["fresh", "six"])
    assert {item.name: item.licence_after for item in found.distributions or ()}["fresh"] == "BSD"


def test_another_name_for_the_same_licence_is_no_change() -> None:
    found = diff(
        with_distributions(Known({"six": "MIT License"}), six="1"), with_distributions(Known({"six": "MIT"}), six="2")
    )
    assert found.licences == ()


def test_unknown_licences_are_counted_with_the_command_that_brings_them() -> None:
    after = replace(with_distributions(six="2", fresh="1"), short="25.03", fetch="lj-image fetch 25.03")
    found = diff(with_distributions(Known({"six": "MIT"}), six="1"), after)
    assert found.notes == ("25.03: licence of 2 distributions not known here: lj-image fetch 25.03",)
    assert found.licences == ()


def test_the_same_version_from_another_file_was_rebuilt() -> None:
    old = contents(distributions={"six": Distribution("six", "1.0", None, "a" * 64)})
    new = contents(distributions={"six": Distribution("six", "1.0", None, "b" * 64)})
    assert [item.kind for item in diff(old, new).distributions or ()] == ["rebuilt"]
    assert not diff(old, old).differs


def test_what_a_base_known_in_part_may_bring_is_neither_added_nor_removed() -> None:
    seen = Distribution("numpy", "1.26", pinned=False)
    image = contents("image", kind="image", distributions={"numpy": seen, "six": replace(seen, name="six")}, base=None)
    release = with_distributions(complete=False, six="1.27")
    found = diff(release, image)
    assert [(item.name, item.kind) for item in found.distributions or ()] == [("six", "down")]
    assert "1 distribution not compared: those of a base are known in part only" in found.notes
    whole = diff(with_distributions(six="1.27"), image)
    assert [item.name for item in whole.distributions or ()] == ["numpy", "six"]


def test_after_the_first_changed_layer_a_docker_build_makes_all_anew() -> None:
    before = contents(layers=layers(("a", 10 * MIB), ("b", 20 * MIB), ("c", 40 * MIB)))
    after = contents(layers=layers(("a", 10 * MIB), ("x", 5 * MIB), ("c", 40 * MIB)), builder="docker")
    found = diff(before, after).layers
    assert found is not None
    assert (found.in_place, found.reused, [layer.title for layer in found.new]) == (1, 2, ["x"])
    assert found.pull.by_position_bytes == 45 * MIB
    assert found.pull.by_content_bytes == 5 * MIB
    assert (found.pull.total_bytes, found.pull.builder) == (55 * MIB, "docker")
    assert [layer.title for layer in found.gone] == ["b"]


def test_on_another_base_no_built_layer_stays_in_place() -> None:
    one = contents(layers=layers(("a", MIB)))
    found = diff(one, contents(layers=one.layers, base="base:2"))
    assert found.base_changed
    assert found.layers is not None
    assert (found.layers.in_place, found.layers.pull.by_position_bytes) == (0, MIB)
    assert (found.layers.pull.by_content_bytes, found.layers.pull.base_changed) == (0, True)


def test_a_layer_under_another_name_is_another_step_but_the_same_content() -> None:
    before = contents(layers=(LayerFact("sha256:a", "tool", MIB),))
    found = diff(before, contents(layers=(LayerFact("sha256:a", "kit", MIB),))).layers
    assert found is not None
    assert (found.in_place, found.new) == (0, ())
    as_image = diff(
        replace(before, kind="image"), contents(kind="image", layers=(LayerFact("sha256:a", "kit", MIB),))
    ).layers
    assert as_image is not None
    assert as_image.in_place == 1


def test_a_layer_that_stands_twice_is_pulled_once_by_content() -> None:
    found = diff(contents(layers=()), contents(layers=layers(("a", MIB), ("a", MIB)))).layers
    assert found is not None
    assert (found.pull.by_content_bytes, found.pull.by_position_bytes) == (MIB, 2 * MIB)


def test_sizes_that_nobody_knows_are_counted_and_not_guessed() -> None:
    found = diff(contents(layers=()), contents(layers=layers(("apt", None), ("a", MIB)))).layers
    assert found is not None
    assert (found.pull.by_position_bytes, found.pull.unsized) == (MIB, 1)
    only = diff(contents(layers=()), contents(layers=layers(("apt", None)))).layers
    assert only is not None
    assert only.pull.by_position_bytes is None


def test_planned_layers_are_not_held_against_those_of_an_image() -> None:
    found = diff(contents(layers=layers(("a", 1))), contents(kind="image", layers=layers(("a", 1))))
    assert found.layers is None
    assert any("name the image that was built from the release" in note for note in found.notes)


def test_files_are_sorted_by_path_with_their_sizes() -> None:
    old = Known(listed={"b": FileFact(1, "x"), "c": FileFact(2, "y"), "same": FileFact(1, "s")})
    new = Known(listed={"c": FileFact(3, "z"), "a": FileFact(4, "w"), "same": FileFact(1, "s")})
    found = diff(contents(details=old), contents(details=new), files=True).files
    assert [(item.path, item.kind, item.before_bytes, item.after_bytes) for item in found or ()] == [
        ("a", "added", None, 4),
        ("b", "removed", 1, None),
        ("c", "changed", 2, 3),
    ]
    assert diff(contents(details=old), contents(details=new)).files is None


def test_a_distribution_that_one_side_cannot_list_is_left_out_on_both() -> None:
    asked: list[list[str]] = []

    class Listed(Known):
        def files(self, names: Iterable[str]) -> Listing:
            asked.append(list(names))
            return Listing({})

    before = replace(with_distributions(Listed(not_listed=frozenset(("six",))), six="1", ray="1"), short="25.02")
    found = diff(before, with_distributions(Listed(), six="2", ray="2"), files=True)
    assert asked == [["ray"], ["ray"]]
    assert "25.02: files of 1 distribution not known here" in found.notes


def test_a_dockerfile_is_a_unified_diff() -> None:
    old, new = (
        contents("25.02", details=Known(text="FROM a\nRUN x\n")),
        contents("25.03", details=Known(text="FROM a\n")),
    )
    lines = diff(old, new, dockerfile=True).dockerfile
    assert lines == ("--- 25.02/Dockerfile", "+++ 25.03/Dockerfile", "@@ -1,2 +1 @@", " FROM a", "-RUN x")


def test_without_a_dockerfile_it_is_said_whose_is_missing() -> None:
    found = diff(contents("25.02"), contents("25.03", details=Known(text="FROM a\n")), dockerfile=True)
    assert found.dockerfile is None
    assert found.notes == ("25.02: no Dockerfile to compare; only a locked release has one",)


@pytest.mark.parametrize(
    "changes",
    [
        {"base": "base:2"},
        {"architectures": ("arm64",)},
        {"layers": layers(("x", 1))},
        {"components": {"ray": Part("Ray", "2")}},
    ],
)
def test_any_difference_counts(changes: dict[str, object]) -> None:
    one = contents(layers=(), components={})
    assert not diff(one, one).differs
    assert diff(one, replace(one, **changes)).differs  # type: ignore[arg-type]


def test_platforms_and_architectures_that_differ_are_said() -> None:
    one = contents("25.02", architectures=("amd64",))
    other = contents("25.03", architectures=("amd64", "arm64"), platform="linux/arm64")
    assert diff(one, other).notes == (
        "the platforms differ: linux/amd64 and linux/arm64",
        "25.02 is made for amd64, 25.03 for amd64, arm64",
    )
