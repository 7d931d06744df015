"""The fixtures of a verification's tests: `host` for those of images, the others for ours."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from lj_image.verify.backend import host_of
from lj_image.verify.facts import Facts
from lj_image.verify.plugin import RUN
from lj_image.verify.subject import Subject
from lj_image.verify.verdict import Verdict


@pytest.fixture(scope="session")
def host(pytestconfig: pytest.Config) -> Host:
    """Return the container, with testinfra's modules."""
    return host_of(pytestconfig.stash[RUN].container)


@pytest.fixture(scope="session")
def subject(pytestconfig: pytest.Config) -> Subject:
    """Return what is verified."""
    return pytestconfig.stash[RUN].subject


@pytest.fixture(scope="session")
def facts(pytestconfig: pytest.Config) -> Facts:
    """Return what was found inside."""
    return pytestconfig.stash[RUN].known


@pytest.fixture
def verdict(request: pytest.FixtureRequest) -> Verdict:
    """Return what takes expected and found."""
    return Verdict(request.node)
