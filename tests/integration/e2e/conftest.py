"""The stand-ins, once for the whole folder: a registry, the vendor's base, both indexes and the archive server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import docker
import pytest
from docker.errors import APIError
from e2e_outside import Outside

from standins import base, small, vendor
from standins.registries import Registry, running
from unit.lock.loopback import Loopback


@pytest.fixture(scope="session")
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Return a registry of this run alone."""
    with running(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="session")
def ngc(engine: docker.APIClient, base_image: str, own_registry: Registry) -> Iterator[str]:
    """Return the reference of the vendor's base in our registry; it is not in the engine."""
    reference = f"{own_registry.address}/nvidia/pytorch:25.01-py3"
    base.make(engine, base_image, reference)
    answers = list(engine.push(reference, stream=True, decode=True))
    assert not [answer for answer in answers if "error" in answer], answers
    engine.remove_image(reference)
    yield reference
    for image in engine.images(reference.rpartition(":")[0]):
        for name in (*(image["RepoTags"] or ()), *(image["RepoDigests"] or ())):
            with suppress(APIError):
                engine.remove_image(name, force=True)


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Return the servers, running."""
    found = Outside(vendor.vendor_index(), vendor.public_index(), vendor.archives())
    with vendor.served(found.vendor, found.public, found.archives):
        yield found


@pytest.fixture(scope="session")
def packages() -> Iterator[Loopback]:
    """Return the index of the small families."""
    index = small.index()
    with vendor.served(index):
        yield index


@pytest.fixture(scope="session")
def kits() -> Iterator[Loopback]:
    """Return the archive server of the small families."""
    server = small.kits()
    with vendor.served(server):
        yield server


@pytest.fixture
def remove_images(engine: docker.APIClient) -> Iterator[Callable[[str], None]]:
    """Return a function to name repositories whose images are removed after the test."""
    repositories: list[str] = []
    yield repositories.append
    sweep(engine, *repositories)


def sweep(engine: docker.APIClient, *repositories: str) -> None:
    """Remove every tag of some repositories from the engine."""
    for image in engine.images():
        for name in image["RepoTags"] or ():
            if name.rpartition(":")[0] in repositories:
                with suppress(APIError):
                    engine.remove_image(name, force=True)
