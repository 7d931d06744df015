"""A push that is killed again and again, at any moment: no tag ever stands for less than the whole image."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from standins.bulky import RELEASE, REPOSITORY, TAG, bulky_project, point_to
from standins.commands import Project
from standins.registries import Registry, running

REGIONS = ("north", "south", "west")
KILLS = 50
LONGEST_S = 1.6

pytestmark = pytest.mark.registry


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, Registry]]:
    """Return a registry process for each region."""
    with ExitStack() as exits:
        found = {}
        for region in REGIONS:
            (tmp_path / region).mkdir()
            found[region] = exits.enter_context(running(tmp_path / region))
        yield found


def is_complete(registry: Registry, repository: str) -> bool:
    """Say whether there is a tag; one that stands for an image of which anything is missing is a failure."""
    if registry.digest(repository, TAG) is None:
        return False
    manifest = registry.manifest(repository, TAG)
    for blob in (manifest["config"], *manifest["layers"]):
        found = registry.get(f"{repository}/blobs/{blob['digest']}", "HEAD")
        assert found.status_code == 200, f"{repository}:{TAG} at {registry.address} lacks {blob['digest']}"
        assert int(found.headers["Content-Length"]) == blob["size"]
    return True


def words(*more: str) -> list[str]:
    return ["push", RELEASE, "--no-verify", "--region", "all", *more]


def begin_anew(project: Project, places: dict[str, Registry], epoch: int) -> None:
    """Publish under other repositories from now on, as if nothing had been published before."""
    point_to(project, {region: f"{registry.address}/epoch{epoch}" for region, registry in places.items()})
    (record,) = (project.cache / "records").rglob(f"{TAG}.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"pushed": []}))


def test_fifty_killed_pushes_leave_no_tag_on_an_incomplete_image(tmp_path: Path, places: dict[str, Registry]) -> None:
    project = bulky_project(tmp_path / "project", (9, 6, 4, 2), REGIONS)
    moments, epoch, completed = random.Random(25), 0, 0
    begin_anew(project, places, epoch)
    for _ in range(KILLS):
        process = project.start(*words())
        time.sleep(moments.uniform(0.1, LONGEST_S))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        there = [is_complete(registry, f"epoch{epoch}/{REPOSITORY}") for registry in places.values()]
        if all(there):
            completed, epoch = completed + 1, epoch + 1
            begin_anew(project, places, epoch)
    outcome = json.loads(project.run(*words("--json")))
    digests = {registry.digest(f"epoch{epoch}/{REPOSITORY}", TAG) for registry in places.values()}
    assert [target["state"] in ("published", "already") for target in outcome["targets"]] == [True] * len(REGIONS)
    assert {target["digest"] for target in outcome["targets"]} == digests
    assert len(digests) == 1
    assert all(is_complete(registry, f"epoch{epoch}/{REPOSITORY}") for registry in places.values())
    again = json.loads(project.run(*words("--json")))
    assert {target["state"] for target in again["targets"]} == {"already"}
