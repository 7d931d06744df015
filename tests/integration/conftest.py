"""What integration tests stand on: an engine, a registry, and a base; each absent one is a skip with its reason.

With LJ_IMAGE_REQUIRE_ENGINE=1 (`make test`, CI) such a skip is a failure. A test that fits some engines only says so
by a reason that begins with "this engine", and may skip then.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path

import docker
import platformdirs
import pytest
from docker.errors import DockerException
from docker.utils import kwargs_from_env
from scratch import BASE_RECIPE, Scratch

from lj_image.builders.bootstrap import bootstrap, load

NEEDED = frozenset(("engine", "registry"))
"""Fixtures, and the markers of the tests that use them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses an engine or a registry, so that `-m "engine or registry"` finds every such test."""
    for item in items:
        for name in sorted(NEEDED.intersection(getattr(item, "fixturenames", ()))):
            item.add_marker(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    needs = NEEDED & {*getattr(item, "fixturenames", ()), *(marker.name for marker in item.iter_markers())}
    if (
        report.skipped
        and needs
        and os.environ.get("LJ_IMAGE_REQUIRE_ENGINE") == "1"
        and not hasattr(report, "wasxfail")
    ):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if not reason.startswith("this engine"):
            report.outcome = "failed"
            report.longrepr = f"skipped although LJ_IMAGE_REQUIRE_ENGINE=1: {reason}"
    return report


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.APIClient]:
    """Return a client of the engine at DOCKER_HOST, or at the default socket."""
    try:
        client = docker.APIClient(**kwargs_from_env(), version="auto", timeout=300)
        client.ping()
    except DockerException as error:
        pytest.skip(f"no Docker engine answers: {error}")
    with client:
        yield client


@pytest.fixture(scope="session")
def registry() -> str:
    """Return HOST:PORT of the registry that `scripts/ensure-registry` started."""
    address = os.environ.get("LJ_IMAGE_TEST_REGISTRY")
    if not address:
        pytest.skip("no registry: set LJ_IMAGE_TEST_REGISTRY to what scripts/ensure-registry prints")
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{address}/v2/", timeout=10).close()
    except urllib.error.URLError as error:
        pytest.skip(f"no registry answers at {address}: {error}")
    return address


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Return the user's own cache: what it holds is found by digest, so tests may share it."""
    return Path(platformdirs.user_cache_path("lj-image"))


@pytest.fixture(scope="session")
def base_rootfs(cache_dir: Path) -> Path:
    """Return the tar of a Debian root file system with Python and pip."""
    return bootstrap(BASE_RECIPE, cache_dir, log=print)


@pytest.fixture(scope="session")
def base_image(engine: docker.APIClient, base_rootfs: Path) -> str:
    """Return the reference of that root file system's image; it stays in the engine, as the cache does."""
    load(engine, BASE_RECIPE, base_rootfs)
    return BASE_RECIPE.reference()


@pytest.fixture(scope="session")
def scratch(engine: docker.APIClient) -> Iterator[Scratch]:
    """Return names that no other run uses."""
    scratch = Scratch(engine, f"lj-image-test-{secrets.token_hex(4)}")
    yield scratch
    scratch.sweep()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)
