"""How a comparison is told: tables, Markdown, JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from lj_image.release.diff.compare import (
    ComponentChange,
    Diff,
    DistributionChange,
    FileChange,
    LayersDiff,
    Pull,
    diff,
)
from lj_image.release.diff.contents import Contents, LayerFact
from lj_image.release.diff.layered import ImageDetails, step_titles
from lj_image.release.diff.markdown import MOST_DOCKERFILE_LINES, MOST_FILES, markdown
from lj_image.release.diff.report import base_line, heading, pull_notes, size, tables, to_json

MIB = 1024 * 1024
ONE = Contents(
    "tiny 25.02, variant open", "25.02", "release", "linux/amd64", ImageDetails({}, {}), "tiny", "open", base="base:1"
)
OTHER = replace(ONE, name="tiny 25.03, variant open", short="25.03", base="base:2")
NEW = LayerFact("sha256:" + "ab" * 32, "vllm", 200 * MIB)
FOUND = Diff(
    ONE,
    OTHER,
    (
        ComponentChange("ray", "Ray", "down", "2.44.0", "2.43.0", "vLLM refuses | 2.44"),
        ComponentChange("vllm", "vLLM", "down", "0.8.4", "0.8.3"),
        ComponentChange("cuda", "CUDA", "up", "12.8.0", "12.8.1", of_base=True),
    ),
    (
        DistributionChange("six", "up", "1", "2", "shared", "MIT", "Apache-2.0"),
        DistributionChange("new_one", "added", None, "1", "tool", None, ""),
    ),
    LayersDiff(3, 3, 1, 2, (NEW,), (), Pull(300 * MIB, 200 * MIB, 900 * MIB, "locked", 1, True, "docker")),
    (FileChange("a", "changed", 1, 2048),),
    ("--- a", "+++ b", "@@ -1 +1 @@", "-FROM x", "+FROM y"),
    ("25.03: something is not known",),
)


def rows(found: Diff, number: int) -> list[tuple[str, ...]]:
    return list(tables(found)[number].rows)


def test_what_matters_most_comes_first() -> None:
    assert [table.title for table in tables(FOUND)] == [
        "3 components: 2 DOWN, 1 up",
        "1 licence changed",
        "2 distributions: 1 up, 1 added",
        "3 layers: the first 1 stay in place, 2 have a content that is there already, 1 new",
        "1 new layer",
        "1 file: 1 changed",
    ]


def test_a_downgrade_has_its_reason_or_that_there_is_none() -> None:
    assert [row[3:] for row in rows(FOUND, 0)] == [
        ("DOWN", "vLLM refuses | 2.44"),
        ("DOWN", "no reason given"),
        ("up", "with the base"),
    ]


def test_distributions_that_went_down_are_not_left_in_the_long_list() -> None:
    down = (
        DistributionChange("ray", "down", "2.44.0", "2.43.0", "ray", None, None),
        DistributionChange("dep", "down", "2", "1", "shared", None, None),
    )
    found = replace(FOUND, distributions=(*FOUND.distributions, *down))  # type: ignore[misc]
    assert tables(found)[1].title == "2 distributions DOWN"
    assert [(row[0], row[4]) for row in rows(found, 1)] == [
        ("ray", "vLLM refuses | 2.44"),
        ("dep", "no reason given"),
    ]
    assert "| dep | 2 | 1 | **DOWN** | no reason given |" in markdown(found).partition("<details>")[0]


def test_both_costs_are_told_and_labelled() -> None:
    assert rows(FOUND, 3) == [
        (
            "must pull, as docker builds (all from the first changed layer on; the record says: docker)",
            "300.0 MiB",
            "2",
        ),
        ("content-addressed layers (only the changed ones)", "200.0 MiB", "1"),
        ("for a node that holds the base alone", "900.0 MiB", "3"),
    ]
    assert pull_notes(FOUND) == (
        "sizes are those of the locked files, which are compressed",
        "the new base comes on top: its size is not known here",
        "1 layer to pull: no size before built",
    )


def test_an_image_s_costs_are_those_of_the_engine_s_store() -> None:
    image = replace(ONE, kind="image", base=None, layers=(NEW,), measure="unpacked")
    found = diff(replace(image, layers=()), image)
    labels = [row[0] for row in tables(found)[0].rows]
    assert labels[:2] == [
        "must pull, into docker's own store (all from the first changed layer on)",
        "into containerd's store (only the changed ones)",
    ]
    assert pull_notes(found) == ("sizes are those of unpacked layers; a registry sends less",)


def test_one_line_says_what_is_compared() -> None:
    assert heading(FOUND) == "tiny 25.02 → 25.03, variant open, linux/amd64"
    image = replace(OTHER, name="image x:1", kind="image", platform="linux/arm64")
    assert heading(replace(FOUND, after=image)) == "tiny 25.02, variant open → image x:1, linux/amd64 and linux/arm64"
    assert base_line(FOUND) == "base: base:1 → base:2"
    assert base_line(replace(FOUND, after=ONE)) == "base: base:1, the same"
    assert base_line(replace(FOUND, after=image, before=replace(ONE, base=None))) is None


def test_columns_with_one_name_are_told_apart() -> None:
    assert tables(replace(FOUND, after=ONE))[0].header[1:3] == ("25.02 before", "25.02 after")


def test_files_are_capped_with_the_rest_counted() -> None:
    many = tuple(FileChange(f"f{number:03}", "added", None, 1) for number in range(100))
    table = tables(replace(FOUND, files=many), most_files=60)[-1]
    assert (len(table.rows), table.left_out, table.title) == (60, 40, "100 files: 100 added")
    assert len(to_json(replace(FOUND, files=many))["files"]) == 100


def test_sizes_for_people() -> None:
    assert [size(item) for item in (None, 0, 1536, 5 * MIB, 2000 * MIB)] == [
        "?",
        "0.0 KiB",
        "1.5 KiB",
        "5.0 MiB",
        "2,000.0 MiB",
    ]


def test_markdown_shows_what_matters_and_folds_long_lists() -> None:
    text = markdown(FOUND)
    assert text.startswith("### tiny 25.02 → 25.03, variant open, linux/amd64\n\nbase: base:1 → base:2\n")
    assert "| Ray | 2.44.0 | 2.43.0 | **DOWN** | vLLM refuses \\| 2.44 |" in text
    assert "<details><summary>2 distributions: 1 up, 1 added</summary>\n\n| Distribution |" in text
    assert "| new\\_one |  | 1 | added | tool | none stated |" in text
    assert "``````diff\n--- a\n+++ b\n" in text
    assert text.endswith("- 25.03: something is not known\n")
    assert text.count("<details>") == text.count("</details>") == 4


def test_markdown_takes_no_html_from_names() -> None:
    named = replace(FOUND.components[0], title="<img src=x>")  # type: ignore[index]
    assert "&lt;img src=x&gt;" in markdown(replace(FOUND, components=(named,)))


def test_markdown_fits_a_comment() -> None:
    many = tuple(FileChange("x" * 100 + str(number), "added", None, 1) for number in range(20_000))
    lines = tuple(f"+{'y' * 60}" for _ in range(5000))
    text = markdown(replace(FOUND, files=many, dockerfile=lines))
    assert len(text) < 65_536
    assert f"… and {20_000 - MOST_FILES:,} more" in text
    assert f"… and {5000 - MOST_DOCKERFILE_LINES:,} more lines" in text


def test_no_difference_is_said() -> None:
    same = diff(replace(ONE, layers=(NEW,)), replace(ONE, layers=(NEW,)))
    assert "No difference." in markdown(same)
    assert tables(same) == ()


def test_json_holds_everything() -> None:
    found = json.loads(json.dumps(to_json(FOUND)))
    assert found["before"]["name"] == "tiny 25.02, variant open"
    assert found["components"][0] | {"reason": None} == {
        "id": "ray",
        "title": "Ray",
        "kind": "down",
        "before": "2.44.0",
        "after": "2.43.0",
        "reason": None,
        "of_base": False,
    }
    assert (found["licences"], found["differs"], found["base_changed"]) == (["six"], True, True)
    assert found["layers"]["pull"]["by_position_bytes"] == 300 * MIB
    assert found["dockerfile"].splitlines()[0] == "--- a"


def test_a_layer_is_titled_by_its_step_where_the_history_tells_which() -> None:
    steps = ("/bin/sh -c #(nop) COPY file:abc in /", "RUN /bin/sh -c pip install x   && true # buildkit", "x" * 70)
    assert step_titles(steps, 3) == ("COPY file:abc in /", "RUN /bin/sh -c pip install x && true", "x" * 59 + "…")
    assert step_titles(steps, 2) == ("layer 1", "layer 2")
