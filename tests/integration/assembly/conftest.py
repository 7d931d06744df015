"""A project of the family `assembled`, locked and fetched once; each test gets a copy with a cache of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from programs import program
from workshop import Workshop

from standins import small, stack, vendor
from standins.commands import SMALL_BASE, Project

TESTS = Path(__file__).parents[2]
FAMILIES = (TESTS / "families/assembled", SMALL_BASE)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Project:
    """Return the project whose locks are written and whose files are in the store; its servers are gone."""
    project = Project.create(tmp_path_factory.mktemp("assembled"), *FAMILIES)
    index, kits = stack.index(), small.kits()
    with vendor.served(index, kits):
        small.configure(project, index, kits, build={"network": "none"})
        project.run("lock", "25.02")
        for variant in ("open", "clashing", "bundled"):
            project.run("fetch", "25.02", "--variant", variant)
        project.run("lock", "25.02", "--variant", "two", "--platform", "linux/arm64")
        for platform in ("linux/amd64", "linux/arm64"):
            project.run("build", "25.02", "--variant", "two", "--platform", platform, "--base", str(base))
    return project


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an OCI layout with a base of two platforms."""
    return stack.base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def workshop(prepared: Project, base: Path, tmp_path: Path) -> Workshop:
    """Return a copy of the project whose cache holds nothing but fetched files."""
    return Workshop.copied(prepared, tmp_path / "copy", base)


@pytest.fixture(scope="module")
def module_workshop(prepared: Project, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Return such a copy that the tests of a module share."""
    return Workshop.copied(prepared, tmp_path_factory.mktemp("shared") / "copy", base)


@pytest.fixture
def skopeo() -> Callable[..., str]:
    """Return a function that runs skopeo with words, and returns what it prints."""
    return program("skopeo")
