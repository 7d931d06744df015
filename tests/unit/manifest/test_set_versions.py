"""`set` changes a scalar or adds a line; every other byte of the file is the one that was there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.errors import ManifestError, UsageError
from lj_image.manifest.set_versions import Edit, set_versions
from samples.tiny import RELEASE

ROOT = Path(__file__).parents[3]
Write = Callable[..., Catalog]

HEIR = 'release: "25.03"\nprevious: "25.02"\n'


def edit(catalog: Catalog, release: str = "25.02", variant: str | None = None, **versions: str) -> Edit:
    return set_versions(catalog, release, versions, variant)


def edited(write: Write, text: str, variant: str | None = None, **versions: str) -> str:
    """Return what a release of 25.03 with this text becomes."""
    catalog = write()
    path = catalog.root / "tiny/releases/25.03.yaml"
    path.write_bytes(text.encode())
    return set_versions(catalog, "25.03", versions, variant).after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  tool: 1.4.2+ali  # why", "  tool: 1.5.0  # why"),
        ("  tool:   '1.4.2'", "  tool:   '1.5.0'"),
        ('  "tool" : "1.4.2" ', '  "tool" : "1.5.0" '),
        ("  the_tool: 1.4.2", "  the_tool: 1.5.0"),
        ("  tool: {version: 1.4.2, features: [a, b]}", "  tool: {version: 1.5.0, features: [a, b]}"),
        (
            "  tool:\n    features: [a]\n    # best\n    version: 1.4.2",
            "  tool:\n    features: [a]\n    # best\n    version: 1.5.0",
        ),
        ("  tool: !!str 1.4.2", "  tool: !!str 1.5.0"),
        ("  tool: >-\n    1.4.2", "  tool: 1.5.0"),
    ],
)
def test_only_the_scalar_changes(write_catalog: Write, before: str, after: str) -> None:
    text = HEIR + "components:\n  # first\n{}\n\n  # last\nhighlights: []   # none\n"
    # str.format would take the braces of a flow mapping
    assert edited(write_catalog, text.replace("{}", before), tool="1.5.0") == text.replace("{}", after)


def test_a_version_that_yaml_would_misread_is_quoted(write_catalog: Write) -> None:
    assert 'tool: "2.50"\n' in edit(write_catalog(), tool="2.50").after


ADDED = {
    "in layer order": (
        "components:\n  kit: '12.8'  # a\n  library: 2.23.4.11\n",
        "components:\n  kit: '12.8'  # a\n  tool: 1.5.0\n  library: 2.23.4.11\n",
    ),
    "first": (
        "components:\n  # about it\n  library: 2.23.4.12\n",
        "components:\n  # about it\n  tool: 1.5.0\n  library: 2.23.4.12\n",
    ),
    "at the end": (
        "components:\n    kit: '12.8'\nfixes: []\n",
        "components:\n    kit: '12.8'\n    tool: 1.5.0\nfixes: []\n",
    ),
    "after a long form": (
        "components:\n  kit:\n    version: '12.8'\n    # its own\n  # of the next\n  library: 1.2.3\n",
        "components:\n  kit:\n    version: '12.8'\n    # its own\n  tool: 1.5.0\n  # of the next\n  library: 1.2.3\n",
    ),
    "in a flow": (
        "components: {kit: '12.8', library: 1.2.3} # x\n",
        "components: {kit: '12.8', tool: 1.5.0, library: 1.2.3} # x\n",
    ),
    "first in a flow": ("components: { library: 1.2.3 }\n", "components: { tool: 1.5.0, library: 1.2.3 }\n"),
    "in an empty flow": ("components: {}\n", "components: {tool: 1.5.0}\n"),
    "in a flow of several lines": (
        "components: {\n  kit: '12.8',\n  library: 1.2.3,\n}\n",
        "components: {\n  kit: '12.8',\n  tool: 1.5.0,\n  library: 1.2.3,\n}\n",
    ),
    "without components": ("fixes:\n- one\n", "components:\n  tool: 1.5.0\nfixes:\n- one\n"),
    "without anything": ("", "components:\n  tool: 1.5.0\n"),
    "before what follows": (
        "date: '2025-03-31'\n# what follows\nunlisted: [kit]\n",
        "date: '2025-03-31'\ncomponents:\n  tool: 1.5.0\n# what follows\nunlisted: [kit]\n",
    ),
    "from its comment": (
        "components:\n  # kit: '12.8'\n  # tool: 1.4.2   # why\n  # library: 1.2.3\n  runtime: 3.11.2\n",
        "components:\n  # kit: '12.8'\n  tool: 1.5.0   # why\n  # library: 1.2.3\n  runtime: 3.11.2\n",
    ),
    "from its comment below": (
        "components:\n  kit: '12.8'\n  #tool: '1.4.2'\n",
        "components:\n  kit: '12.8'\n  tool: '1.5.0'\n",
    ),
    "not from a sentence": (
        "components:\n  kit: '12.8'\n  # tool: see the notes\n",
        "components:\n  kit: '12.8'\n  tool: 1.5.0\n  # tool: see the notes\n",
    ),
    "not from a comment behind a value": (
        "components:\n  kit: '12.8'  # tool: 1.4.2\n",
        "components:\n  kit: '12.8'  # tool: 1.4.2\n  tool: 1.5.0\n",
    ),
}


@pytest.mark.parametrize("case", ADDED)
def test_an_inherited_component_gets_a_line(write_catalog: Write, case: str) -> None:
    before, after = ADDED[case]
    assert edited(write_catalog, HEIR + before, tool="1.5.0") == HEIR + after


IN_VARIANT = {
    "there": (
        "variants:\n  open:\n    components: {tool: 1.4.2}\n",
        "variants:\n  open:\n    components: {tool: 1.5.0}\n",
    ),
    "no components": (
        "variants:\n  open:\n    expected_complaints: {}\nfixes: []\n",
        "variants:\n  open:\n    components:\n      tool: 1.5.0\n    expected_complaints: {}\nfixes: []\n",
    ),
    "another variant": (
        "variants:\n  vendor:\n    components: {}\n\nfixes: []\n",
        "variants:\n  vendor:\n    components: {}\n  open:\n    components:\n      tool: 1.5.0\n\nfixes: []\n",
    ),
    "no variants": ("fixes: []\n", "variants:\n  open:\n    components:\n      tool: 1.5.0\nfixes: []\n"),
    "a flow": (
        'variants: {open: {unavailable: "no"}}\n',
        'variants: {open: {components: {tool: 1.5.0}, unavailable: "no"}}\n',
    ),
}


@pytest.mark.parametrize("case", IN_VARIANT)
def test_a_variant_gets_a_version_of_its_own(write_catalog: Write, case: str) -> None:
    before, after = IN_VARIANT[case]
    assert edited(write_catalog, HEIR + before, "open", tool="1.5.0") == HEIR + after


def test_several_versions_are_set_at_once(write_catalog: Write) -> None:
    after = edit(write_catalog(), tool="1.5.0", library="2.24.0", runtime="3.11.3").after
    assert after == RELEASE.replace("1.4.2+ali", "1.5.0").replace("2.23.4.11", "2.24.0").replace("3.11.2", "3.11.3")


@pytest.mark.parametrize("text", [HEIR + "components:\n  kit: '12.8'  # a\nfixes: []\n", HEIR])
def test_lines_that_end_as_on_windows_still_do(write_catalog: Write, text: str) -> None:
    after = edited(write_catalog, text.replace("\n", "\r\n"), tool="1.5.0", kit="12.9")
    assert after == edited(write_catalog, text, tool="1.5.0", kit="12.9").replace("\n", "\r\n")
    assert "  tool: 1.5.0\r\n" in after


@pytest.mark.parametrize("text", [HEIR.rstrip("\n"), HEIR + "components:\n  kit: '12.8'  # a", HEIR + "components: {}"])
def test_a_file_without_a_final_line_end_stays_without(write_catalog: Write, text: str) -> None:
    after = edited(write_catalog, text, tool="1.5.0")
    assert "tool: 1.5.0" in after
    assert after.splitlines()[-1] == after[-len(after.splitlines()[-1]) :]


def test_the_mark_that_some_editors_start_a_file_with_stays(write_catalog: Write) -> None:
    assert edited(write_catalog, "\ufeff" + HEIR + "components: {tool: 1.4.2}\n", tool="1.5.0") == (
        "\ufeff" + HEIR + "components: {tool: 1.5.0}\n"
    )


def test_characters_outside_of_ascii_shift_nothing(write_catalog: Write) -> None:
    text = HEIR + "date: '2025-03-31' # 三月 🚀\ncomponents: {kit: '12.8', tool: 1.4.2}\n"
    assert edited(write_catalog, text, tool="1.5.0") == text.replace("1.4.2", "1.5.0")


def test_what_was_there_before_is_told(write_catalog: Write) -> None:
    catalog = write_catalog(r25_03=HEIR + "components: {kit: '12.8'}\n")
    changes = edit(catalog, "25.03", tool="1.5.0", kit="12.9").changes
    assert [(item.component, item.before, item.after, item.inherited) for item in changes] == [
        ("tool", "1.4.2+ali", "1.5.0", True),
        ("kit", "12.8", "12.9", False),
    ]


def test_a_variant_that_goes_on_with_its_own_version_is_told(write_catalog: Write) -> None:
    catalog = write_catalog(r25_02=RELEASE + "variants: {open: {components: {Tool: 1.4.1}}}\n")
    assert edit(catalog, tool="1.5.0").kept_by == {"tool": ("open",)}


@pytest.mark.parametrize(
    ("text", "variant", "versions", "words"),
    [
        (RELEASE, None, {"tol": "1"}, "unknown component 'tol'"),
        (RELEASE, None, {"runtime": "3.12", "tol": "1"}, "unknown component 'tol'"),
        (RELEASE, None, {"tool": "1", "the_tool": "2"}, "tool is given twice"),
        (RELEASE, "opn", {"tool": "1"}, "no variant 'opn'"),
        (RELEASE + "unlisted: [kit]\n", None, {"kit": "1"}, "its `unlisted` names it"),
        (
            RELEASE.replace("  tool: 1.4.2+ali\n", "") + 'variants: {open: {components: {tool: "1"}}}\n',
            None,
            {"tool": "1"},
            "tool is promised in open only",
        ),
        (RELEASE, None, {"tool": "1 2"}, "is not written as it should be"),
    ],
)
def test_what_cannot_be_set_is_told(
    write_catalog: Write, text: str, variant: str | None, versions: dict[str, str], words: str
) -> None:
    with pytest.raises((ManifestError, UsageError), match=words):
        set_versions(write_catalog(r25_02=text), "25.02", versions, variant)


def test_a_diff_names_the_file_and_the_lines(write_catalog: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = write_catalog()
    monkeypatch.chdir(catalog.root.parent)
    lines = edit(catalog, tool="1.5.0").diff().splitlines()
    assert lines[:2] == ["--- a/images/tiny/releases/25.02.yaml", "+++ b/images/tiny/releases/25.02.yaml"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-  tool: 1.4.2+ali", "+  tool: 1.5.0"]


FILES = sorted((ROOT / "images").glob("*/releases/*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_in_every_file_of_this_project_any_version_can_be_set_and_set_back(path: Path) -> None:
    catalog = Catalog(ROOT / "images")
    family = catalog.family(path.parent.parent.name)
    promised = family.release(path.stem).file.components
    for name, promise in promised.items():
        old = promise if isinstance(promise, str) else promise.version
        found = set_versions(catalog, f"{family.name}/{path.stem}", {name: "0.0.7"})
        pairs = list(zip(found.before.split("\n"), found.after.split("\n"), strict=True))
        differing = [(before, after) for before, after in pairs if before != after]
        assert [after.replace('"0.0.7"', "0.0.7").replace("0.0.7", old) for _, after in differing] == [
            before.replace(f'"{old}"', old) for before, _ in differing
        ]
        assert len(differing) == 1
