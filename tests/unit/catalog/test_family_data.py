"""The families as data: what was published of each release, transcribed here a second time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import PipSource, Platform, Release
from lj_image.catalog.resolve import resolve
from lj_image.catalog.text import Text
from lj_image.catalog.versions import public
from lj_image.cli import run
from lj_image.config import Config, ConfigFile
from lj_image.errors import ManifestError
from lj_image.lock.lockfile import lock_path, read_lock

ROOT = Path(__file__).parents[3]
CATALOG = Catalog(ROOT / "images")
TRAINING, INFERENCE = "training-nv-pytorch", "inference-nv-pytorch"
RELEASES = ("25.02", "25.03", "25.04", "25.07", "25.08", "25.09", "25.10")
# The published tables of components, a column for each release; a dash where a table does not list the component.
PUBLISHED = """
                         25.02       25.03                                 25.04       25.07          25.08                25.09                25.10
ubuntu                   -           24.04                                 24.04       24.04          24.04                24.04                24.04
python                   -           3.12.7+gc                             3.12.7+gc   3.12.7+gc      3.12.7+gc            3.12.7+gc            3.12.7+gc
cuda                     12.8.0      12.8.0                                12.8.0      12.8           12.8                 12.8                 12.8
cudnn                    9.7.0.66    -                                     -           -              -                    -                    -
torch                    -           2.6.0.7                               2.6.0.7     2.7.1.8+nv25.3 2.7.1.8+nv25.3       2.8.0.9+nv25.3       2.8.0.9+nv25.3
accl-n                   2.23.4.11   2.23.4.12                             2.23.4.12   2.27.5.14      2.27.5.14            -                    -
triton                   -           3.1.0                                 3.2.0       3.3.0          3.3.0                3.4.0                3.4.0
transformer-engine       -           2.1                                   2.1         2.3.0+5de3e14  2.3.0+5de3e14        2.3.0+5de3e148       2.4.0+3cd6870c
deepspeed                -           0.15.4+ali                            0.15.4+ali  0.16.9+ali     0.16.9+ali           0.16.9+ali           0.16.9+ali
flash-attn               -           2.7.2                                 2.7.2       2.7.2          2.7.2                2.8.3                2.8.3
flash-attn-3             -           3.0.0b1                               3.0.0b1     3.0.0b1        3.0.0b1              3.0.0b1              3.0.0b1
transformers             4.48.3+ali  4.49.0+ali                            4.51.2+ali  4.51.2+ali     4.53.3+ali           4.56.1+ali           4.56.1+ali
accelerate               -           1.5.2                                 1.6.0+ali   1.7.0+ali      1.7.0+ali            1.7.0+ali            1.7.0+ali
megatron-core            -           0.9.0                                 0.9.0       0.12.1         0.12.1               0.12.1               0.14.0
grouped-gemm             -           1.1.4                                 1.1.4       1.1.4          1.1.4                1.1.4                1.1.4
diffusers                -           0.31.0                                0.31.0      0.34.0         0.34.0               0.34.0               0.34.0
vllm                     0.7.2       0.8.2.dev0+g61c7a1b8.d20250325.cu128  0.8.5+cu128 0.9.2          0.10.0               0.10.1.1             0.11.0
ray                      2.42.1      2.44.0                                2.43.0      2.47.1         2.48.0               2.49.2               2.50.1
flashinfer-python        -           0.2.3                                 0.2.5       0.2.5          0.2.5                0.2.5                0.2.5
peft                     -           0.13.2                                0.13.2      0.16.0         0.16.0               0.16.0               0.16.0
openmim                  -           0.3.9                                 0.3.9       -              -                    -                    -
mmengine                 -           0.10.3                                0.10.3      0.10.3         0.10.3               0.10.3               0.10.3
mmcv                     -           2.1.0                                 2.1.0       2.1.0          2.1.0                2.1.0                2.1.0
mmdet                    -           3.3.0                                 3.3.0       3.3.0          3.3.0                3.3.0                3.3.0
opencv-python-headless   -           4.10.0.84                             4.10.0.84   4.11.0.86      4.11.0.86            4.11.0.86            4.11.0.86
ultralytics              -           8.2.74                                8.2.74      8.3.96         8.3.96               8.3.96               8.3.96
timm                     -           1.0.13                                1.0.13      1.0.17         1.0.19               1.0.20               1.0.20
pytorch-dynamic-profiler -           0.24.11                               0.24.11     0.24.11        0.24.11              0.24.11              0.24.11
perf                     -           5.4.30                                5.4.30      5.4.30         5.4.30               5.4.30               5.4.30
gdb                      -           15.0.50                               15.0.50     15.0.50        15.0.50.20240403-git 15.0.50.20240403-git 15.0.50.20240403-git
"""  # noqa: E501 (a table is read along its columns)
# Inference 25.04: what both images have, and the rest of each.
BOTH_ENGINES = {
    "ubuntu": "22.04",
    "python": "3.10",
    "torch": "2.6.0+cu124",
    "cuda": "12.4",
    "accl-n": "2.23.4.12",
    "triton": "3.2.0",
}
ENGINES = {
    "vllm": {
        "accelerate": "1.6.0",
        "diffusers": "0.33.1",
        "flash-attn": "2.7.4.post1",
        "transformers": "4.51.3",
        "vllm": "0.8.5",
        "ray": "2.43.0",
        "xgrammar": "0.1.18",
    },
    "sglang": {
        "transformers": "4.51.1",
        "xgrammar": "0.1.17",
        "flashinfer-python": "0.2.3",
        "sglang": "0.4.6.post1",
        "sgl-kernel": "0.1.0",
    },
}
OPEN = (
    *((TRAINING, name, "open") for name in RELEASES if name != "25.03"),
    (INFERENCE, "25.04", "vllm-open"),
    (INFERENCE, "25.04", "sglang-open"),
)


@cache
def released(image: str, name: str, variant: str, architecture: str = "amd64") -> Release:
    nothing = Config(file=None, values=ConfigFile(), cache_dir=Path("unused"))
    platform = Platform("linux", architecture)
    return resolve(CATALOG, nothing, f"{image}/{name}", variant=variant, platform=platform)


def published(name: str) -> dict[str, str]:
    names, *rows = (line.split() for line in PUBLISHED.strip().splitlines())
    column = 1 + names.index(name)
    return {row[0]: row[column] for row in rows if row[column] != "-"}


def promised(release: Release) -> dict[str, str]:
    present = {item.id: item.version for item in release.components}
    return present | {item.id: item.version for item in release.left_out}


def distributions(release: Release, component: str) -> dict[str, str]:
    found = release.component(component)
    assert found is not None
    assert isinstance(found.source, PipSource)
    return dict(found.source.distributions)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_promises_what_its_published_table_lists(name: str) -> None:
    release = released(TRAINING, name, "serverless")
    assert promised(release) == published(name)
    assert release.left_out == ()


def test_on_arm64_there_is_no_perf_and_triton_is_another_distribution() -> None:
    amd64, arm64 = (released(TRAINING, "25.10", "serverless", each) for each in ("amd64", "arm64"))
    assert promised(amd64).keys() - promised(arm64).keys() == {"perf"}
    assert distributions(amd64, "triton") == {"triton": "3.4.0"}
    assert distributions(arm64, "triton") == {"pytorch-triton": "3.4.0"}


@pytest.mark.parametrize("name", RELEASES)
def test_only_the_last_release_is_made_for_arm64(name: str) -> None:
    wanted = ("amd64", "arm64") if name == "25.10" else ("amd64",)
    assert released(TRAINING, name, "serverless").architectures == wanted


@pytest.mark.parametrize("name", RELEASES)
def test_a_training_images_tag_is_its_release(name: str) -> None:
    assert released(TRAINING, name, "serverless").tag == f"{name}-serverless"


@pytest.mark.parametrize(
    ("name", "previous", "inherits"),
    [
        ("25.02", None, None),
        ("25.03", "25.02", "25.02"),
        ("25.04", "25.03", "25.03"),
        ("25.07", "25.06", "25.04"),  # 25.06 was published without a table
        ("25.08", "25.07", "25.07"),
        ("25.09", "25.08", "25.08"),
        ("25.10", "25.09", "25.09"),
    ],
)
def test_a_release_says_what_came_before_and_what_it_is_a_difference_to(
    name: str, previous: str | None, inherits: str | None
) -> None:
    release = released(TRAINING, name, "serverless")
    assert (release.previous, release.inherits) == (previous, inherits)


@pytest.mark.parametrize(
    ("name", "base"),
    [("25.02", "25.01"), ("25.03", "25.02"), ("25.04", "25.03"), ("25.07", "25.03"), ("25.10", "25.03")],
)
def test_a_training_image_stands_on_the_ngc_release_that_was_published_last(name: str, base: str) -> None:
    assert released(TRAINING, name, "serverless").base.reference == f"nvcr.io/nvidia/pytorch:{base}-py3"


@pytest.mark.parametrize("name", RELEASES[1:])
def test_the_drivers_are_those_of_the_published_text(name: str) -> None:
    driver = released(TRAINING, name, "serverless").driver
    assert driver is not None
    assert driver.requires == (">=570" if name in ("25.03", "25.04") else ">=575")
    # The text has R545 on both of its lists, so it is on neither of ours.
    assert driver.data_centre == (("R470", "470.57"), ("R525", "525.85"), ("R535", "535.86"))
    assert driver.refused == ("R418", "R440", "R450", "R460", "R510", "R520", "R530", "R555", "R560")


def test_of_25_02_no_driver_and_no_date_was_published() -> None:
    release = released(TRAINING, "25.02", "serverless")
    assert (release.driver, release.date) == (None, None)


def test_ray_goes_down_in_25_04_and_the_file_says_why() -> None:
    ray = CATALOG.family(TRAINING).release("25.04").file.components["ray"]
    assert not isinstance(ray, str)
    assert ray.downgrade is not None


@pytest.mark.parametrize(
    ("name", "component", "words"),
    [
        ("25.02", "accl-n", "ACCL-Barex"),
        ("25.02", "transformers", "4.48.3"),
        ("25.02", "vllm", "0.7.2"),
        ("25.02", "ray", "2.42.1"),
        ("25.03", "flashinfer-python", "FlashInfer 0.2.3 is new"),
        ("25.04", "transformers", "Qwen3"),
        ("25.07", "torch", "Blackwell"),
    ],
)
def test_a_highlight_tells_what_a_person_adds_to_a_components_change(name: str, component: str, words: str) -> None:
    told = [item for item in released(TRAINING, name, "serverless").highlights if component in item.components]
    assert any(words in item.text.en and words.split()[0] in str(item.text.zh) for item in told)


@pytest.mark.parametrize(
    ("name", "words"),
    [("25.03", "illegal memory access"), ("25.09", "torch.compile()")],
)
def test_the_published_fixes_are_told(name: str, words: str) -> None:
    (fix,) = released(TRAINING, name, "serverless").fixes
    assert words in fix.en


@pytest.mark.parametrize("engine", ENGINES)
def test_an_inference_image_promises_what_the_table_of_its_engine_lists(engine: str) -> None:
    release = released(INFERENCE, "25.04", engine)
    assert promised(release) == {**BOTH_ENGINES, **ENGINES[engine]}
    assert release.left_out == ()


@pytest.mark.parametrize(
    ("engine", "tag"),
    [
        ("sglang", "25.04-sglang0.4.6.post1-pytorch2.6-cu124-20250430-serverless"),
        ("vllm", "25.04-vllm0.8.5-pytorch2.6-cu124-20250430-serverless"),
    ],
)
def test_an_inference_images_tag_names_its_engine_pytorch_cuda_and_day(engine: str, tag: str) -> None:
    release = released(INFERENCE, "25.04", engine)
    assert release.tag == tag
    assert release.driver is not None
    assert release.driver.requires == ">=550"


@pytest.mark.parametrize(("image", "name", "variant"), OPEN)
def test_an_open_image_has_the_promised_public_version_or_says_what_stands_in(
    image: str, name: str, variant: str
) -> None:
    release = released(image, name, variant)
    wanted = published(name) if image == TRAINING else {**BOTH_ENGINES, **ENGINES[variant.partition("-")[0]]}
    for item in release.components:
        if item.id in wanted and item.stands_in_for is None and item.id != "cuda":
            assert public(item.installed_version) == public(wanted[item.id]), item.id


@pytest.mark.parametrize(("image", "name", "variant"), OPEN)
def test_nothing_promised_is_missing_in_an_open_image_without_a_reason(image: str, name: str, variant: str) -> None:
    release = released(image, name, variant)
    wanted = published(name) if image == TRAINING else {**BOTH_ENGINES, **ENGINES[variant.partition("-")[0]]}
    assert wanted.keys() <= promised(release).keys()


@pytest.mark.parametrize(("image", "name", "variant"), OPEN)
def test_each_expected_complaint_is_about_a_version_that_the_lock_has_otherwise(
    image: str, name: str, variant: str
) -> None:
    release = released(image, name, variant)
    lock = read_lock(lock_path(release))
    for distribution, requirements in release.expected_complaints.items():
        assert lock.distribution(distribution) is not None
        for requirement in requirements:
            wanted, _, version = requirement.partition("==")
            locked = lock.distribution(wanted)
            assert locked is not None
            assert locked.version != version, requirement
            assert distribution in locked.required_by


def test_a_release_that_nobody_can_have_in_a_variant_says_why() -> None:
    with pytest.raises(ManifestError, match=r"xgrammar 0\.1\.16"):
        released(TRAINING, "25.03", "open")


def test_show_says_why_a_variant_cannot_be_had(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    images = ["--images", str(ROOT / "images"), "show", "25.03"]
    assert run(images) == 0
    assert "not in open: vLLM 0.8.2, the nearest public version, requires xgrammar 0.1.16" in capsys.readouterr().out
    assert run([*images, "--json"]) == 0
    assert "xgrammar 0.1.16" in json.loads(capsys.readouterr().out)["unavailable"]["open"]


def texts(release: Release) -> Iterator[Text]:
    yield from (item.text for item in release.highlights)
    yield from release.fixes
    yield from (item.reason for item in release.left_out)
    yield from (item.stands_in_for for item in release.components if item.stands_in_for)
    if release.notes:
        yield from (release.notes.product, release.notes.scenario)


def everything() -> Iterable[Release]:
    yield from (released(TRAINING, name, "serverless") for name in RELEASES)
    yield from (released(INFERENCE, "25.04", engine) for engine in ENGINES)
    yield from (released(*each) for each in OPEN)


def test_every_text_is_there_in_both_languages() -> None:
    untranslated = {text.en for release in everything() for text in texts(release) if not text.zh}
    assert untranslated == set()
    assert all(text.en.isascii() for release in everything() for text in texts(release))


@pytest.mark.parametrize("path", sorted((ROOT / "images").glob("*/releases/*.yaml")), ids=lambda path: path.stem)
def test_a_release_file_is_read_in_one_look(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60
