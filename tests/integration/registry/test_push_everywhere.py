"""`lj-image push` to several real registries at once: what each has afterwards, what was sent, what is said of it."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from standins.bulky import RELEASE, TAG, bulky_project, change, point_to
from standins.commands import Project
from standins.faults import Faulty, faulty
from standins.registries import Registry, running

REGIONS = ("north", "south", "west")
MIB = 1024 * 1024

pytestmark = pytest.mark.registry


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Registry]]:
    with ExitStack() as exits:
        yield {region: exits.enter_context(running(tmp_path_factory.mktemp(region))) for region in REGIONS}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return bulky_project(tmp_path_factory.mktemp("bulky") / "project", (6, 3, 1), REGIONS)


@pytest.fixture
def project(prepared: Project, places: dict[str, Registry], tmp_path: Path) -> Project:
    """Return the project as if nothing had been published, each time with repositories of its own."""
    (record,) = (prepared.cache / "records").rglob(f"{TAG}.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"pushed": []}))
    prepared.env["LJ_IMAGE_STATE"] = str(tmp_path / "state")
    point(prepared, {region: registry.address for region, registry in places.items()}, tmp_path.name)
    return prepared


def point(project: Project, addresses: dict[str, str], path: str) -> None:
    point_to(project, {region: f"{address}/{path.lower()}" for region, address in addresses.items()})


@pytest.fixture
def before(places: dict[str, Registry]) -> Iterator[Callable[..., Faulty]]:
    with ExitStack() as exits:
        yield lambda region, *faults: exits.enter_context(faulty(places[region].address, *faults))


def push(project: Project, *more: str, code: int = 0) -> list[dict[str, Any]]:
    done = project.attempt("push", RELEASE, "--no-verify", "--region", "all", "--json", *more)
    assert done.returncode == code, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["targets"]
    return found


def held(places: dict[str, Registry], targets: list[dict[str, Any]], tag: str = TAG) -> list[str | None]:
    """Return what the registries themselves have under the tag."""
    found = []
    for target in targets:
        host, _, rest = target["sent_to"].partition("/")
        registry = next(item for item in places.values() if item.address.endswith(host.rpartition(":")[2]))
        found.append(registry.digest(rest.rpartition(":")[0], tag))
    return found


def test_all_places_end_on_one_digest_and_each_got_every_byte_once(
    project: Project, places: dict[str, Registry]
) -> None:
    targets = push(project)
    assert [target["state"] for target in targets] == ["published"] * 3
    assert held(places, targets) == [targets[0]["digest"]] * 3
    for target in targets:
        assert 10 * MIB < target["carried"]["sent_bytes"] < 10.1 * MIB
        assert target["carried"]["mounted_bytes"] == target["carried"]["existing_bytes"] == 0


def test_the_second_time_nothing_is_sent(
    project: Project, places: dict[str, Registry], before: Callable[..., Faulty], tmp_path: Path
) -> None:
    push(project)
    proxies = {region: before(region) for region in REGIONS}
    point(project, {region: proxy.address for region, proxy in proxies.items()}, tmp_path.name)
    assert [target["state"] for target in push(project)] == ["already"] * 3
    for proxy in proxies.values():
        assert {entry["kind"] for entry in proxy.report()["requests"]} == {"manifest-head"}


def test_one_dead_place_leaves_the_others_done_and_the_next_run_touches_it_alone(
    project: Project, places: dict[str, Registry], tmp_path: Path
) -> None:
    addresses = {region: registry.address for region, registry in places.items()}
    point(project, addresses | {"south": "localhost:1"}, tmp_path.name)
    north, south, west = push(project, code=3)
    assert [target["state"] for target in (north, south, west)] == ["published", "failed", "published"]
    assert "refuses the connection" in south["message"]
    point(project, addresses, tmp_path.name)
    assert [target["state"] for target in push(project)] == ["already", "published", "already"]


def test_all_or_nothing_tags_nothing_while_one_place_lacks_it(
    project: Project, places: dict[str, Registry], before: Callable[..., Faulty], tmp_path: Path
) -> None:
    addresses = {region: registry.address for region, registry in places.items()}
    refusing = before("south", "status:403:0:manifest-put")
    point(project, addresses | {"south": refusing.address}, tmp_path.name)
    targets = push(project, "--all-or-nothing", code=1)
    assert [target["state"] for target in targets] == ["withheld", "failed", "withheld"]
    assert held(places, [targets[0], targets[2]]) == [None, None]
    point(project, addresses, tmp_path.name)
    targets = push(project, "--all-or-nothing")
    assert [target["state"] for target in targets] == ["published"] * 3
    assert [target["carried"]["sent_bytes"] for target in targets] == [0, 0, 0], "the blobs were there"


def test_places_on_one_registry_get_the_bytes_once(
    project: Project, before: Callable[..., Faulty], tmp_path: Path
) -> None:
    proxy = before("north")
    point_to(project, {region: f"{proxy.address}/{tmp_path.name.lower()}/{region}" for region in REGIONS})
    targets = push(project)
    assert [target["state"] for target in targets] == ["published"] * 3
    assert sum(target["carried"]["mounted_bytes"] for target in targets) > 20 * MIB
    assert proxy.received_bytes < 10.1 * MIB


def test_a_tag_that_holds_something_else_is_refused_where_it_does(
    project: Project, places: dict[str, Registry], tmp_path: Path
) -> None:
    targets = push(project)
    try:
        change(project, 2, seed=90)
        refused = push(project, code=1)
        assert [target["state"] for target in refused] == ["refused"] * 3
        forced = push(project, "--force-tag")
        assert [target["state"] for target in forced] == ["published"] * 3
        assert [target["previous"] for target in forced] == [{TAG: targets[0]["digest"]}] * 3
        assert all(target["carried"]["existing_bytes"] > 8 * MIB for target in forced), "only what is new was sent"
        assert all(target["carried"]["sent_bytes"] < 1.1 * MIB for target in forced)
    finally:
        change(project, 2, seed=2)


def test_a_killed_push_goes_on_where_it_was(
    project: Project, places: dict[str, Registry], before: Callable[..., Faulty], tmp_path: Path
) -> None:
    proxies = {region: before(region, f"slow:{2 * MIB}") for region in REGIONS}
    point(project, {region: proxy.address for region, proxy in proxies.items()}, tmp_path.name)
    process = project.start("push", RELEASE, "--no-verify", "--region", "all")
    deadline = time.monotonic() + 60
    while min(proxy.received_bytes for proxy in proxies.values()) < 5 * MIB:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    point(project, {region: registry.address for region, registry in places.items()}, tmp_path.name)
    targets = push(project)
    assert [target["state"] for target in targets] == ["published"] * 3
    assert held(places, targets) == [targets[0]["digest"]] * 3
    assert any(target["carried"]["existing_bytes"] for target in targets), "blobs that had arrived were not sent again"


def test_ctrl_c_ends_at_once_and_no_tag_stands_for_less(
    project: Project, places: dict[str, Registry], before: Callable[..., Faulty], tmp_path: Path
) -> None:
    proxies = {region: before(region, f"slow:{MIB // 2}") for region in REGIONS}
    point(project, {region: proxy.address for region, proxy in proxies.items()}, tmp_path.name)
    process = project.start("push", RELEASE, "--no-verify", "--region", "all")
    while min(proxy.received_bytes for proxy in proxies.values()) < MIB:
        time.sleep(0.05)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - began < 5
    assert "Traceback" not in said
    assert "no tag" in said or "interrupted" in said


def test_the_table_says_what_each_place_cost(project: Project) -> None:
    done = project.attempt("push", RELEASE, "--no-verify", "--region", "all")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["published"] * 3
    assert all(re.search(r"sent (9|10)\.\d MiB in \d+\.\d s", line) for line in lines[:3])
    assert lines[-1].count("@sha256:") == 3
    assert done.stderr.count(" MiB to send") == 3
    assert "Authorization" not in done.stderr
    assert "_state" not in done.stderr
