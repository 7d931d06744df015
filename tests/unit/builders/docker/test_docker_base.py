"""The base as an engine describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import docker
import pytest

from lj_image.builders.docker.base import ensure_base
from lj_image.catalog.release import Base, BaseFacts
from lj_image.config import Config, ConfigFile

ELSEWHERE = "other.example/nvidia/pytorch@sha256:other"


class Engine:
    """Knows one image, under several names."""

    def __init__(self, *digests: str) -> None:
        self.digests = digests

    def inspect_image(self, reference: str) -> dict[str, Any]:
        return {"Id": "sha256:id", "Size": 1, "RepoDigests": list(self.digests)}


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        ((ELSEWHERE, "mirror.example:5000/nvidia/pytorch@sha256:ours"), "sha256:ours"),
        ((ELSEWHERE,), "sha256:other"),
        ((), "sha256:id"),
    ],
)
def test_the_digest_of_a_base_is_the_one_at_the_registry_it_comes_from(
    tmp_path: Path, digests: tuple[str, ...], expected: str
) -> None:
    values = ConfigFile(mirrors={"nvcr.io": "mirror.example:5000"})
    facts = BaseFacts("ngc", "3.12.3", "2.39", "/site", {}, {}, True, "bases/ngc.yaml")
    base = Base("nvcr.io/nvidia/pytorch:25.01-py3", None, facts)
    config = Config(file=None, values=values, cache_dir=tmp_path)
    found = ensure_base(cast("docker.APIClient", Engine(*digests)), base, config, log=print)
    assert (found.digest, found.reference) == (expected, "mirror.example:5000/nvidia/pytorch:25.01-py3")
