from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Component, PipSource, Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.errors import LjImageError
from lj_image.plan import MIB, PipLayer, layer_digest, plan, plan_digest
from samples.locks import distribution, made_up_lock


@pytest.fixture
def release(write_catalog: Callable[..., Catalog], config: Config) -> Release:
    return resolve(write_catalog(), config, "25.02", variant="open")


def test_a_component_is_a_layer_and_what_several_require_is_one_more(release: Release) -> None:
    shared = distribution("common", "1.0", "shared", required_by=("tool", "kit-core"))
    titles = [layer.title for layer in plan(release, made_up_lock(release, more=[shared])).layers]
    assert titles == ["kit", "tool", "library", "shared", "protected packages"]


@pytest.mark.parametrize(("size_bytes", "own"), [(32 * MIB, True), (32 * MIB - 1, False)])
def test_a_wheel_of_32_mib_has_a_layer_of_its_own(release: Release, size_bytes: int, own: bool) -> None:
    layers = plan(release, made_up_lock(release, {"kit-core": size_bytes})).layers
    titles = [layer.title for layer in layers if "kit" in layer.components]
    assert titles == (["kit: kit-core", "kit"] if own else ["kit"])


def test_the_constraints_hold_the_version_that_the_base_has_or_the_release_installs(release: Release) -> None:
    lock = made_up_lock(release)
    assert plan(release, lock).protected_versions() == (("torch", "2.6.0a0+ecf3bae40a.nv25.1"),)
    with_torch = made_up_lock(release, more=[distribution("torch", "2.5.1", "tool")])
    assert plan(release, with_torch).protected_versions() == (("torch", "2.5.1"),)


def test_a_partial_plan_has_its_components_and_what_they_reach(release: Release) -> None:
    reached = distribution("needed", "1", "shared", required_by=("tool",))
    deeper = distribution("deeper", "1", "shared", required_by=("needed",))
    other = distribution("other", "1", "shared", required_by=("lib-open",))
    partial = plan(release, made_up_lock(release, more=[reached, deeper, other]), only=["tool"])

    assert [item.name for item in partial.installed()] == ["deeper", "needed", "tool"]
    assert partial.tag == "25.02-tool1.4-partial"
    assert [item.id for item in partial.components()] == ["runtime", "tool"]


def test_a_tried_version_marks_the_tag(release: Release) -> None:
    tried = replace(release, overridden={"tool": "9"})
    assert plan(tried, made_up_lock(tried)).tag == "25.02-tool1.4-try"


def test_the_digest_changes_with_a_file_and_with_nothing_else(release: Release) -> None:
    first = plan_digest(plan(release, made_up_lock(release)))
    assert plan_digest(plan(release, made_up_lock(release))) == first
    assert plan_digest(plan(release, made_up_lock(release, {"tool": 11}))) == first  # the same file by its sha256
    changed = made_up_lock(release, more=[distribution("new", "1", "shared")])
    assert plan_digest(plan(release, changed)) != first
    compiled = replace(release, bytecode="unchecked-hash")
    assert plan_digest(plan(compiled, made_up_lock(release))) != first


def test_more_layers_than_an_engine_starts_are_refused_early(release: Release) -> None:
    components = tuple(
        Component(f"c{number}", "c", "1", PipSource(((f"c{number}", "1"),), "pypi", None, False, "metadata"))
        for number in range(101)
    )
    many = replace(release, components=components)
    with pytest.raises(LjImageError, match="needs 102 layers, more than 100"):
        plan(many, made_up_lock(many))


def test_a_layer_of_distributions_is_sorted_by_name(release: Release) -> None:
    [layer] = [layer for layer in plan(release, made_up_lock(release)).layers if layer.title == "kit"]
    assert isinstance(layer, PipLayer)
    assert [item.name for item in layer.distributions] == ["kit-core", "kit-extra"]


def test_a_layer_is_known_by_its_content_and_not_by_its_title(release: Release) -> None:
    layer = plan(release, made_up_lock(release)).layers[0]
    assert layer_digest(replace(layer, title="renamed")) == layer_digest(layer)
    changed = plan(release, made_up_lock(release, more=[distribution("numpy", "1", layer.components[0])])).layers[0]
    assert layer_digest(changed) != layer_digest(layer)
