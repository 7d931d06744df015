"""The notes as a reader sees them. `UPDATE_GOLDEN=1 pytest tests/unit/release/notes` rewrites the files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_records import record_of

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.release.notes import note_facts, render_notes
from lj_image.templating import Templates

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests/unit/golden/notes"
PUBLIC = "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-open"
INSIDE = "acs-registry-vpc.cn-beijing.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-open"
FOUND = {
    "cuda": "12.8",
    "cudnn": "9.7.0",
    "accl-n": "2.23.4",
    "torch": "2.5.1+cu124",
    "deepspeed": "0.16.3",
    "accelerate": "1.3.0",
    "ray": "2.42.1",
    "vllm": "0.7.2",
    "transformers": "4.48.3",
    "ljperf": "0.1.0",
}
"""As the libraries and the metadata of a real image said."""
VERIFIED = record_of("training-nv-pytorch", "25.02", "open", FOUND, ((PUBLIC, None), (INSIDE, "cn-beijing")))


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), "changed; if it should, run with UPDATE_GOLDEN=1 and review the difference"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("release", ["25.02", "25.10"])
def test_the_note_of_a_planned_release_is_the_reviewed_one(
    real_note: Callable[..., str], release: str, language: str
) -> None:
    check_golden(f"{release}-serverless.{language}.md", real_note(release, "serverless", language))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_note_of_a_verified_release_is_the_reviewed_one(
    config: Config, templates: Templates, language: str
) -> None:
    catalog = Catalog(ROOT / "images")
    release = resolve(catalog, config, "training-nv-pytorch/25.02", variant="open", base_known=False)
    text = render_notes(note_facts(catalog, config, release, VERIFIED), templates, language, "md")
    check_golden(f"25.02-open.{language}.md", text)
