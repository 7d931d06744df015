from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from lj_image.cli import run
from lj_image.errors import UsageError
from samples.published import FIRST, NEXT, told, written
from samples.published import IMAGE as PUBLISHED
from samples.tiny import IMAGE, RELEASE

ROOT = Path(__file__).parents[3]
CUDA = "cuda: {title: CUDA, sources: {vendor: {kind: base}}}"
RAY = "ray: {title: Ray, sources: {vendor: {kind: base}}}"


def test_the_catalog_of_this_project_is_clean() -> None:
    assert lint(Catalog(ROOT / "images")) == ()


def test_every_finding_of_every_file_comes_at_once(write_catalog: Callable[..., Catalog]) -> None:
    catalog = write_catalog(
        r25_02=RELEASE.replace("tool: 1.4.2+ali", "tol: 1.4.2+ali"),
        r25_03='release: "25.03"\ncomponents: {kit: 12.8}\n',
    )
    assert [finding.message for finding in lint(catalog)] == [
        "unknown component 'tol'",
        "components.kit: 12.8 is read as the number 12.8",
    ]


def test_a_spelling_that_means_two_components_is_found(write_catalog: Callable[..., Catalog]) -> None:
    image = IMAGE.replace("aliases: [Tool, the_tool]", "aliases: [kit]")
    assert [item.message for item in lint(write_catalog(image=image))] == ["'kit' means kit and tool"]


def test_a_source_for_an_unknown_variant_is_found(write_catalog: Callable[..., Catalog]) -> None:
    image = IMAGE.replace("      open: {kind: base, probe: python}", "      opn: {kind: base, probe: python}")
    messages = [item.message for item in lint(write_catalog(image=image))]
    assert "components.runtime has a source for 'opn', which is no variant of tiny" in messages


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("components: {ray: 2.45.0, Ray: 2.45.0}", ("unknown-component", "25.04.yaml:3:27")),
        ("components: {ray: 2.44.0, ray: 2.45.0}", ("invalid-file", "25.04.yaml:3:27")),
        ("components: {torch: 2.6.0.7, Torch: 2.6.0.7}", ("component-twice", "25.04.yaml:3:30")),
        ("variants: {open: {components: {torch: 2.7.0, Torch: 2.7.1}}}", ("component-twice", "25.04.yaml:3:46")),
        ("variants: {open: {components: {trch: 2.7.0}}}", ("unknown-component", "25.04.yaml:3:32")),
        ("unlisted: [Torch, torch]", ("component-twice", "25.04.yaml:3:19")),
        ("unlisted: [tourch]", ("unknown-component", "25.04.yaml:3:12")),
        ("unlisted: [accl-n]", ("unlisted-not-inherited", "25.04.yaml:3:12")),
        ("variants: {opn: {}}", ("unknown-variant", "25.04.yaml:3:12")),
    ],
)
def test_a_name_in_a_release_that_is_wrong_or_twice_is_found(
    write_catalog: Callable[..., Catalog], release: str, expected: tuple[str, str]
) -> None:
    second = f'release: "25.04"\nprevious: "25.03"\n{release}\n'
    assert told(written(write_catalog, second=second)) == [expected]


def test_a_component_may_differ_in_a_variant(write_catalog: Callable[..., Catalog]) -> None:
    second = NEXT + "variants: {open: {components: {vllm: 0.8.5}}}\n"
    assert told(written(write_catalog, second=second)) == []


def test_a_promise_that_is_unlisted_at_once_is_found(write_catalog: Callable[..., Catalog]) -> None:
    (finding,) = lint(written(write_catalog, second=NEXT + "unlisted: [vllm]\n"))
    assert (finding.code, finding.message) == (
        "unlisted-not-inherited",
        "vllm is unlisted, but 25.04 promises it itself",
    )


def test_components_of_highlights_are_known_and_stand_once(write_catalog: Callable[..., Catalog]) -> None:
    second = NEXT + "highlights: [{en: News, zh: 新闻, components: [vllm, vLM, vllm]}]\n"
    findings = lint(written(write_catalog, second=second))
    assert [(item.code, item.message) for item in findings] == [
        ("unknown-component", "unknown component 'vLM'"),
        ("component-twice", "'vllm' stands here twice"),
    ]
    assert findings[0].hint == "did you mean vllm?"


def test_every_component_without_a_source_is_found_at_once(write_catalog: Callable[..., Catalog]) -> None:
    image = PUBLISHED.replace("cuda: {title: CUDA, sources: {vendor: {kind: base}, open: {kind: base}}}", CUDA)
    image = image.replace("ray: {title: Ray, sources: {vendor: {kind: base}, open: {kind: base}}}", RAY)
    findings = lint(written(write_catalog, image=image), "25.04")
    assert [item.message for item in findings] == [
        "component 'cuda' has no source in the variant 'open'",
        "component 'ray' has no source in the variant 'open'",
    ]
    assert {str(item.code) for item in findings} == {"no-source"}


def test_what_a_variant_leaves_out_or_no_release_promises_needs_no_source(
    write_catalog: Callable[..., Catalog],
) -> None:
    image = PUBLISHED.replace(
        "ray: {title: Ray, sources: {vendor: {kind: base}, open: {kind: base}}}",
        "ray: {title: Ray, sources: {vendor: {kind: base}}, left_out: {open: {en: why, zh: 原因}}}",
    ).replace("accl-n: {title: ACCL-N, sources: {vendor: {kind: base}, open: {kind: base}}}", "accl-n: {title: ACCL-N}")
    assert told(written(write_catalog, image=image)) == []


@pytest.mark.parametrize(
    ("left_out", "code"),
    [("opn: {en: why, zh: 原因}", "unknown-variant"), ("open: {en: why, zh: 原因}", "source-and-left-out")],
)
def test_a_component_left_out_of_no_variant_or_of_one_with_a_source_is_found(
    write_catalog: Callable[..., Catalog], left_out: str, code: str
) -> None:
    image = PUBLISHED.replace("  ray: {title: Ray, ", f"  ray: {{title: Ray, left_out: {{{left_out}}}, ")
    ((found, place),) = told(written(write_catalog, image=image))
    assert (found, place.partition(":")[0]) == (code, "image.yaml")


def test_every_architecture_of_a_release_is_resolved(write_catalog: Callable[..., Catalog]) -> None:
    catalog = written(write_catalog, second=NEXT + "architectures: [amd64, arm64]\n")
    ((code, place),) = told(catalog)
    assert (code, place) == ("resolution", "base-arm64.yaml")


def test_a_variant_on_a_base_of_ours_is_for_the_architecture_of_that(write_catalog: Callable[..., Catalog]) -> None:
    image = PUBLISHED.replace(
        '{reference: "registry.example/base:{os}", facts: base}', "{image: our-base, facts: base}"
    )
    catalog = written(write_catalog, image=image, second=NEXT + "architectures: [amd64, arm64]\n")
    folder = catalog.root / "our-base"
    folder.mkdir()
    (folder / "image.yaml").write_text(
        "image: our-base\ntitle: ours\n"
        "bootstrap: {suite: stable, architecture: amd64, include: [python3], source_date_epoch: 0}\n"
    )
    assert told(catalog) == []


def test_one_release_can_be_looked_at_alone(write_catalog: Callable[..., Catalog]) -> None:
    catalog = written(write_catalog, first=FIRST + "unlisted: [ray]\n", second=NEXT + "unlisted: [accl-n]\n")
    assert [place for _, place in told(catalog)] == ["25.03.yaml:9:12", "25.04.yaml:4:12"]
    assert [place for _, place in told(catalog, "tiny/25.04")] == ["25.04.yaml:4:12"]
    with pytest.raises(UsageError, match="no release"):
        lint(catalog, "tiny/26.01")


def test_an_unknown_component_hides_nothing_else(write_catalog: Callable[..., Catalog]) -> None:
    first = FIRST.replace("  cuda:", "  Cudda: 12.8.0\n  cuda:")
    second = NEXT.replace("vllm:", "rai: 2.43.0, ray: 2.43.0, vllm:") + (
        "unlisted: [tourch, accl-n]\nhighlights: [{en: News, zh: 新闻, components: [rai, cuda]}]\n"
    )
    catalog = written(write_catalog, first=first, second=second)
    expected = [
        ("unknown-component", "25.04.yaml:3:14"),
        ("downgrade-without-reason", "25.04.yaml:3:27"),
        ("unknown-component", "25.04.yaml:4:12"),
        ("unlisted-not-inherited", "25.04.yaml:4:20"),
        ("unknown-component", "25.04.yaml:5:46"),
        ("highlight-without-change", "25.04.yaml:5:51"),
    ]
    assert told(catalog) == [("unknown-component", "25.03.yaml:4:3"), *expected]
    assert told(catalog, "25.04") == told(catalog)


def test_each_file_is_read_once(write_catalog: Callable[..., Catalog], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    of_path = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or of_path(path))  # type: ignore[func-returns-value]
    lint(written(write_catalog, r25_05='release: "25.05"\nprevious: "25.04"\n'))
    assert sorted(read) == ["25.02.yaml", "25.03.yaml", "25.04.yaml", "25.05.yaml", "base.yaml", "image.yaml"]


def test_the_command_shows_code_place_and_way_out(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = written(write_catalog, second=NEXT + "unlisted: [accl-n]\n")
    assert run(["--images", str(catalog.root), "lint", "tiny/25.04"]) == 2
    shown = capsys.readouterr()
    message, place, way_out = shown.out.splitlines()
    assert message == "accl-n is unlisted, but 25.04 inherits no such component [unlisted-not-inherited]"
    assert place.endswith("25.04.yaml:4:12")
    assert way_out.startswith("  `unlisted` takes away what is inherited")
    assert shown.err == "1 finding\n"


def test_the_command_shows_findings_to_machines(
    write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = written(write_catalog, second=NEXT + "unlisted: [accl-n]\n")
    assert run(["--images", str(catalog.root), "lint", "--json"]) == 2
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["code"], finding["line"], finding["column"]) == ("unlisted-not-inherited", 4, 12)
    assert run(["--images", str(written(write_catalog).root), "lint", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
