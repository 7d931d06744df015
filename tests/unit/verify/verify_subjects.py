"""Small plans for the tests of verify, as catalog and lock would give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lj_image.catalog.release import (
    Base,
    BaseFacts,
    BaseSource,
    Component,
    ComponentSource,
    Endpoints,
    PipSource,
    Platform,
    Release,
    RunConfig,
)
from lj_image.lock.lock import Artifact, Lock, LockedArchive, LockedDistribution
from lj_image.plan import Plan, plan


def base_component(name: str, version: str, probe: str) -> Component:
    return Component(name, name, version, BaseSource(probe))


def component(name: str, version: str, source: ComponentSource) -> Component:
    return Component(name, name, version, source)


def pip_source(
    name: str, version: str, *, imports: str | None = None, probe: str = "metadata", **more: str
) -> PipSource:
    return PipSource(((name, version), *more.items()), "pypi", imports, overrides=False, probe=probe)


def locked(name: str, version: str, component: str) -> LockedDistribution:
    artifact = Artifact(f"{name}-{version}-py3-none-any.whl", 1000, "0" * 64, "wheel")
    return LockedDistribution(name, version, artifact, "pypi", component)


def locked_archive(component: str, version: str) -> LockedArchive:
    return LockedArchive(component, version, Artifact("a.tar.gz", 1000, "1" * 64, "archive"), component)


def make_plan(
    *components: Component,
    distributions: tuple[LockedDistribution, ...] = (),
    archives: tuple[LockedArchive, ...] = (),
    protected: tuple[str, ...] = (),
    base_packages: Mapping[str, str] | None = None,
    complaints: Mapping[str, tuple[str, ...]] | None = None,
    base_complaints: Mapping[str, tuple[str, ...]] | None = None,
    config: RunConfig | None = None,
    size_budget_bytes: int | None = None,
) -> Plan:
    facts = BaseFacts(
        name="base",
        python="3.11",
        glibc="2.36",
        site_packages="/usr/local/lib/python3.11/dist-packages",
        packages=base_packages or {},
        complaints=base_complaints or {},
        complete=True,
        file="bases/base.yaml",
    )
    release = Release(
        image="tiny",
        title="Tiny",
        description="",
        name="25.02",
        variant="open",
        variant_reason="",
        tag="25.02-open",
        platform=Platform(),
        base=Base("registry.example/base:12", None, facts),
        components=components,
        protected=protected,
        expected_complaints=complaints or {},
        endpoints=Endpoints("public.example", "vpc.{region}.example", ("north",), "team/tiny"),
        config=config or RunConfig(),
        folder=Path("images/tiny"),
        size_budget_bytes=size_budget_bytes,
    )
    return plan(release, Lock("25.02-open", (), distributions, archives, "sha256:" + "2" * 64))
