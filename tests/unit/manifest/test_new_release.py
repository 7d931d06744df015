"""A new release's file is valid at once, and holds what it inherits in comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.promises import promises
from lj_image.errors import UsageError
from lj_image.manifest.new_release import new_release
from lj_image.manifest.set_versions import set_versions
from samples.tiny import IMAGE, RELEASE

Write = Callable[..., Catalog]

UNAVAILABLE = RELEASE + 'variants:\n  vendor: {unavailable: "say: \\"no\\""}\n  open: {components: {tool: 1.4.0}}\n'


def written(catalog: Catalog, release: str = "25.03", previous: str = "25.02") -> str:
    """Write the new release, and return its text."""
    new = new_release(catalog, release, previous)
    new.path.write_text(new.text)
    return new.text


def versions(catalog: Catalog, release: str, variant: str | None = None) -> dict[str, str]:
    family = catalog.family("tiny")
    return {name: item.promise.version for name, item in promises(family, family.chain(release), variant).items()}


def test_a_new_release_promises_what_the_one_before_does(write_catalog: Write) -> None:
    catalog = write_catalog(r25_02=UNAVAILABLE)
    text = written(catalog)
    assert text.splitlines()[1].startswith('release: "25.03"')
    for variant in (None, "vendor", "open"):
        assert versions(catalog, "25.03", variant) == versions(catalog, "25.02", variant)


def test_a_reason_why_a_variant_cannot_be_had_is_taken_along(write_catalog: Write) -> None:
    catalog = write_catalog(r25_02=UNAVAILABLE)
    written(catalog)
    assert catalog.family("tiny").release("25.03").file.variants["vendor"].unavailable == 'say: "no"'


def test_every_comment_becomes_what_it_says_when_it_is_uncommented(write_catalog: Write) -> None:
    catalog = write_catalog(r25_02=UNAVAILABLE + "architectures: [amd64]\ndriver: '>=570'\n")
    text = written(catalog).replace("20YY-MM-DD", "2025-03-31")
    own_words = ("# 25.03 of", "# Uncomment")
    lines = [
        line if line.strip().startswith(own_words) else re.sub(r"^( *)# ", r"\1", line) for line in text.split("\n")
    ]
    (catalog.root / "tiny/releases/25.03.yaml").write_text("\n".join(lines))
    file = Catalog(catalog.root).family("tiny").release("25.03").file
    old = Catalog(catalog.root).family("tiny").release("25.02").file
    assert file.components == old.components
    assert file.variants["open"].components == old.variants["open"].components
    assert (file.base, file.architectures, file.driver) == (old.base, old.architectures, old.driver)


def test_set_takes_the_lines_that_wait_behind_a_comment(write_catalog: Write) -> None:
    catalog = write_catalog()
    text = written(catalog)
    after = set_versions(catalog, "25.03", {"tool": "1.5.0"}).after
    assert after == text.replace("  # tool: 1.4.2+ali\n", "  tool: 1.5.0\n")


@pytest.mark.parametrize(
    ("release", "previous", "words"),
    [
        ("25.3", "25.02", "year and month"),
        ("25.1", "25.02", "year and month"),
        ("25.13", "25.02", "year and month"),
        ("25.03.x", "25.02", "year and month"),
        ("../25.03", "25.02", "two images|no image"),
        ("25.03", "25.20", "did you mean 25.02"),
        ("25.03", "tinny/25.02", "did you mean tiny"),
        ("25.01", "25.02", "not older"),
        ("25.02", "25.02", "not older"),
        ("other/25.03", "tiny/25.02", "two images"),
        ("25.02.1", "25.02", None),
        ("tiny/25.03", "25.02", None),
        ("25.03", "tiny/25.02", None),
    ],
)
def test_names_are_checked_before_anything_is_read(
    write_catalog: Write, release: str, previous: str, words: str | None
) -> None:
    catalog = write_catalog()
    if words is None:
        assert new_release(catalog, release, previous).path.parent == catalog.root / "tiny/releases"
        return
    with pytest.raises(UsageError) as caught:
        new_release(catalog, release, previous)
    assert re.search(words, "\n".join(caught.value.lines()))


def test_a_release_that_exists_is_refused(write_catalog: Write) -> None:
    catalog = write_catalog(r25_03='release: "25.03"\nprevious: "25.02"\n')
    with pytest.raises(UsageError, match=r"25\.03\.yaml exists already"):
        new_release(catalog, "25.03", "25.02")


def _second_family(root: Path) -> None:
    folder = root / "small"
    (folder / "releases").mkdir(parents=True)
    (folder / "image.yaml").write_text(IMAGE.replace("image: tiny", "image: small"))
    (folder / "releases/25.02.yaml").write_text(RELEASE)
    (folder / "releases/25.03.yaml").write_text('release: "25.03"\nprevious: "25.02"\n')


def test_where_two_images_have_such_a_release_its_image_is_asked_for_and_told(write_catalog: Write) -> None:
    catalog = write_catalog()
    _second_family(catalog.root)
    with pytest.raises(UsageError, match="several images"):
        new_release(catalog, "25.03", "25.02")
    assert new_release(catalog, "25.03", "25.02", "tiny").name == "tiny/25.03"
    assert new_release(catalog, "tiny/25.04", "25.02").name == "25.04"
