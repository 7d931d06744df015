from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import LockError, ManifestError, ResolutionError, UsageError
from lj_image.lock.lock import Lock
from lj_image.lock.lockfile import format_lock
from lj_image.lock.resolve import resolve
from lj_image.lock.store import ArtifactStore
from unit.lock.loopback import Loopback, sdist
from unit.lock.releases import archive, pip, release

TORCH = "2.6.0a0+ecf3bae40a.nv25.1"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(file=None, values=ConfigFile(), cache_dir=tmp_path / "cache")


@pytest.fixture
def vendor(serve: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """Return an index that asks for a password."""
    monkeypatch.setenv("VENDOR_PASSWORD", "s3cret:/@")
    return serve(credentials=("robot", "s3cret:/@"))


@pytest.fixture
def with_vendor(config: Config, vendor: Loopback) -> Config:
    source = Source(url=vendor.simple, username="robot", password_env="VENDOR_PASSWORD")
    return replace(config, values=ConfigFile(indexes={"vendor": source}))


def versions(lock: Lock) -> dict[str, str]:
    return {item.name: item.version for item in lock.distributions}


def test_closure_is_locked_with_file_size_and_digest(index: Loopback, config: Config) -> None:
    app = index.offer("app", "1.0", ["helper>=1"])
    index.offer("helper", "1.1")
    index.offer("helper", "1.2")
    lock = resolve(release(app=pip(("App", "1.0"))), config)
    assert versions(lock) == {"app": "1.0", "helper": "1.2"}
    found = lock.distribution("app")
    assert found is not None
    assert found.artifact.file == "app-1.0-py3-none-any.whl"
    assert found.artifact.size_bytes == len(app)
    assert found.artifact.sha256 == hashlib.sha256(app).hexdigest()


def test_owner_is_the_only_component_that_brings_a_distribution(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["helper", "common"])
    index.offer("tool", "1.0", ["common"])
    index.offer("helper", "1.0")
    index.offer("common", "1.0")
    lock = resolve(release(app=pip(("app", "1.0")), tool=pip(("tool", "1.0"))), config)
    assert {item.name: item.component for item in lock.distributions} == {
        "app": "app",
        "common": "shared",
        "helper": "app",
        "tool": "tool",
    }
    assert {item.name: item.required_by for item in lock.distributions}["common"] == ("app", "tool")


def test_torch_of_the_base_survives_a_package_that_asks_for_a_final_one(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["torch>=2.6"])
    index.offer("torch", "2.6.0")
    lock = resolve(release(app=pip(("app", "1.0")), base={"torch": TORCH}, protected=("torch",)), config)
    assert versions(lock) == {"app": "1.0"}
    assert f"base torch=={TORCH} (protected)" in lock.inputs


def test_package_of_the_base_is_no_candidate_and_brings_no_requirements(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["helper>=1"])
    index.offer("helper", "1.0", ["unwanted"])
    index.offer("helper", "2.0")
    index.offer("unwanted", "1.0")
    lock = resolve(release(app=pip(("app", "1.0")), base={"Helper": "1.0"}), config)
    assert versions(lock) == {"app": "1.0"}


def test_component_that_needs_another_version_than_the_base_has_is_named(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["middle"])
    index.offer("middle", "1.0", ["helper>=2"])
    index.offer("helper", "2.0")
    with pytest.raises(ResolutionError) as error:
        resolve(release(app=pip(("app", "1.0")), base={"helper": "1.0"}), config)
    assert error.value.message == (
        "component app (through middle) needs helper>=2, but the base base has helper 1.0, which is not replaced"
    )
    assert error.value.hint is not None
    assert "uv says:" in error.value.hint
    assert "middle" in error.value.hint


@pytest.mark.parametrize("protected", [(), ("helper",)])
def test_component_replaces_a_package_of_the_base_by_naming_it(
    index: Loopback, config: Config, protected: tuple[str, ...]
) -> None:
    index.offer("helper", "2.0")
    asked = release(helper=pip(("helper", "2.0")), base={"helper": "1.0"}, protected=protected)
    assert versions(resolve(asked, config)) == {"helper": "2.0"}


def test_component_comes_from_its_own_index_although_the_public_one_has_the_version(
    index: Loopback, vendor: Loopback, with_vendor: Config
) -> None:
    index.offer("transformers", "4.48.3", ["helper"])
    index.offer("transformers", "4.48.3+ali")
    index.offer("helper", "1.0")
    ours = vendor.offer("transformers", "4.48.3+ali", ["helper"], payload=b"ali")
    vendor.offer("helper", "9.0")
    lock = resolve(release(transformers=pip(("transformers", "4.48.3+ali"), index="vendor")), with_vendor)
    assert versions(lock) == {"helper": "1.0", "transformers": "4.48.3+ali"}
    found = lock.distribution("transformers")
    assert found is not None
    assert (found.index, found.artifact.sha256) == ("vendor", hashlib.sha256(ours).hexdigest())
    assert "127.0.0.1" not in format_lock(lock)
    assert not any("Authorization" in headers for _, _, headers in index.requests)


def test_wrong_password_is_named_and_never_shown(
    index: Loopback, vendor: Loopback, with_vendor: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.offer("transformers", "4.48.3+ali")
    monkeypatch.setenv("VENDOR_PASSWORD", "guess")
    with pytest.raises(ResolutionError, match="the index 'vendor' refuses us") as error:
        resolve(release(transformers=pip(("transformers", "4.48.3+ali"), index="vendor")), with_vendor)
    assert "guess" not in "\n".join(error.value.lines())


def test_index_that_the_config_does_not_know_is_an_error_with_the_lines_to_add(index: Loopback, config: Config) -> None:
    with pytest.raises(LockError, match="no address for the index 'vendor'") as error:
        resolve(release(app=pip(("app", "1.0"), index="vendor")), config)
    assert error.value.hint is not None
    assert "indexes:\n  vendor:\n    url:" in error.value.hint


def test_version_that_no_index_has_names_the_closest(index: Loopback, config: Config) -> None:
    for version in ("0.6.1", "0.7.1", "0.7.3", "0.10.0"):
        index.offer("app", version)
    with pytest.raises(ResolutionError) as error:
        resolve(release(app=pip(("app", "0.7.2"))), config)
    assert error.value.message == "component app: the index 'pypi' has no app==0.7.2"
    assert error.value.hint is not None
    assert error.value.hint.startswith("closest there: 0.7.3, 0.7.1")


def test_name_that_no_index_has_is_an_error(index: Loopback, config: Config) -> None:
    with pytest.raises(ResolutionError, match=r"component app: the index 'pypi' has no aap==1\.0"):
        resolve(release(app=pip(("aap", "1.0"))), config)


def test_components_that_exclude_each_other_are_both_named(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["helper<2"])
    index.offer("tool", "3.0", ["helper>=2"])
    index.offer("helper", "1.0")
    index.offer("helper", "2.0")
    with pytest.raises(ResolutionError, match="cannot be installed together") as error:
        resolve(release(app=pip(("app", "1.0")), tool=pip(("tool", "3.0"))), config)
    assert "app (app==1.0)" in error.value.message
    assert "tool (tool==3.0)" in error.value.message


def test_overriding_component_wins_over_what_others_pin(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["cudnn==9.1"])
    index.offer("cudnn", "9.1")
    index.offer("cudnn", "9.7")
    asked = release(app=pip(("app", "1.0")), cudnn=pip(("cudnn", "9.7"), overrides=True))
    assert versions(resolve(asked, config)) == {"app": "1.0", "cudnn": "9.7"}


def test_overriding_component_may_come_from_a_named_index(
    index: Loopback, vendor: Loopback, with_vendor: Config
) -> None:
    index.offer("app", "1.0", ["cudnn==9.1"])
    index.offer("cudnn", "9.7")
    ours = vendor.offer("cudnn", "9.7", payload=b"ours")
    asked = release(app=pip(("app", "1.0")), cudnn=pip(("cudnn", "9.7"), index="vendor", overrides=True))
    found = resolve(asked, with_vendor).distribution("cudnn")
    assert found is not None
    assert (found.index, found.artifact.sha256) == ("vendor", hashlib.sha256(ours).hexdigest())
    assert found.artifact.size_bytes == len(ours)


def test_locked_versions_stay_unless_they_are_to_be_upgraded(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["helper", "other"])
    for name in ("helper", "other"):
        index.offer(name, "1.0")
    asked = release(app=pip(("app", "1.0")))
    first = resolve(asked, config)
    for name in ("helper", "other"):
        index.offer(name, "2.0")
    assert resolve(asked, config, previous=first) == first
    upgraded = resolve(asked, config, previous=first, upgrade=["Helper"])
    assert versions(upgraded) == {"app": "1.0", "helper": "2.0", "other": "1.0"}


def test_locked_file_stays_although_a_better_one_appeared(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0")
    asked = release(app=pip(("app", "1.0")))
    first = resolve(asked, config)
    index.offer("app", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    assert resolve(asked, config, previous=first) == first
    again = resolve(asked, config, previous=first, upgrade=["app"])
    assert again.distributions[0].artifact.file == "app-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_file_fits_the_architecture_and_the_base_s_c_library(index: Loopback, config: Config) -> None:
    for platform in ("manylinux_2_28_x86_64", "manylinux_2_38_x86_64", "manylinux_2_17_aarch64"):
        index.offer("app", "1.0", tag=f"cp311-cp311-{platform}")
    amd64 = resolve(release(app=pip(("app", "1.0"))), config)
    arm64 = resolve(release(app=pip(("app", "1.0")), architecture="arm64"), config)
    assert amd64.distributions[0].artifact.file.endswith("manylinux_2_28_x86_64.whl")
    assert arm64.distributions[0].artifact.file.endswith("manylinux_2_17_aarch64.whl")
    assert arm64.key == "25.02-open-arm64"


def test_source_is_locked_where_there_is_no_wheel(index: Loopback, config: Config) -> None:
    file, content = sdist("app", "1.0")
    index.projects["app"] = {file: content}
    found = resolve(release(app=pip(("app", "1.0"))), config).distributions[0].artifact
    assert (found.kind, found.file, found.size_bytes) == ("sdist", "app-1.0.tar.gz", len(content))


@pytest.mark.parametrize("pages", ["html", "bare"])
def test_what_an_index_does_not_state_is_learned_from_the_file(index: Loopback, config: Config, pages: str) -> None:
    index.pages = pages
    content = index.offer("app", "1.0")
    found = resolve(release(app=pip(("app", "1.0"))), config).distributions[0].artifact
    assert (found.size_bytes, found.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_index_of_the_config_stands_in_for_the_default_one(
    serve: Callable[..., Loopback], index: Loopback, config: Config
) -> None:
    mirror = serve()
    mirror.offer("app", "1.0")
    source = Source(url=mirror.simple)
    mirrored = replace(config, values=ConfigFile(indexes={"pypi": source}))
    assert resolve(release(app=pip(("app", "1.0"))), mirrored).distributions[0].index == "pypi"
    assert index.requests == []


def test_two_versions_of_one_distribution_are_refused(config: Config) -> None:
    with pytest.raises(ManifestError, match=r"app asks for helper==1, component tool for helper==2"):
        resolve(release(app=pip(("helper", "1")), tool=pip(("helper", "2"))), config)


def test_version_that_pip_does_not_know_is_refused(config: Config) -> None:
    with pytest.raises(ManifestError, match=r"'15\.0\.50\.20240403-git' is no version that pip knows"):
        resolve(release(gdb=pip(("gdb", "15.0.50.20240403-git"))), config)


def test_archive_is_hashed_at_its_first_lock_and_kept_ever_after(
    serve: Callable[..., Loopback], config: Config
) -> None:
    vendor = serve(archives={"accl-1.tar.gz": b"accl"})
    source = Source(url=f"{vendor.url}/archives")
    known = replace(config, values=ConfigFile(archives={"vendor": source}))
    asked = release(accl_n=archive("accl-1.tar.gz"))
    first = resolve(asked, known)
    found = first.archives[0].artifact
    assert (found.size_bytes, found.sha256) == (4, hashlib.sha256(b"accl").hexdigest())
    assert ArtifactStore(config.cache_dir).has(found)
    vendor.archives["accl-1.tar.gz"] = b"other"
    assert resolve(asked, known, previous=first) == first
    assert resolve(asked, known, previous=first, upgrade=["accl-n"]) != first
    with pytest.raises(LockError, match="no address for the archives of 'vendor'"):
        resolve(asked, config)


def test_settings_of_other_projects_do_not_change_the_lock(
    index: Loopback, config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index.offer("app", "1.0", ["helper"])
    index.offer("helper", "1.0")
    index.offer("helper", "2.0")
    (tmp_path / "c.txt").write_text("helper<2\n")
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "c.txt"))
    monkeypatch.setenv("UV_RESOLUTION", "lowest")
    assert versions(resolve(release(app=pip(("app", "1.0"))), config))["helper"] == "2.0"


def test_upgrade_of_a_name_that_is_not_locked_is_refused(index: Loopback, config: Config) -> None:
    index.offer("app", "1.0", ["helper"])
    index.offer("helper", "1.0")
    asked = release(app=pip(("app", "1.0")))
    first = resolve(asked, config)
    with pytest.raises(UsageError, match="nothing is locked as 'helpr'") as error:
        resolve(asked, config, previous=first, upgrade=["helpr"])
    assert error.value.hint == "did you mean helper?"


def test_distribution_for_another_python_or_platform_is_named_with_its_component(
    index: Loopback, config: Config
) -> None:
    index.offer("app", "1.0", ["inner"])
    index.offer("inner", "2.0", tag="cp311-cp311-manylinux_2_38_x86_64")
    with pytest.raises(ResolutionError) as error:
        resolve(release(app=pip(("app", "1.0"))), config)
    assert error.value.message == (
        "component app (through inner): no file of inner 2.0 fits the base base, which has Python 3.11 and glibc 2.36"
    )


def test_uv_without_a_cache_serves_as_well(index: Loopback, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_NO_CACHE", "1")
    index.offer("app", "1.0")
    assert versions(resolve(release(app=pip(("app", "1.0"))), config)) == {"app": "1.0"}


@pytest.fixture
def with_extras(index: Loopback) -> Loopback:
    """Return an index whose app asks for more with each of its extras."""
    requires = ["common", "board>=2; extra == 'default'", "fast; extra == 'speed-up'", "common; extra == 'speed-up'"]
    index.offer("app", "1.0", requires, extras=("default", "speed-up"))
    index.offer("board", "2.0", ["web"])
    for name in ("web", "fast", "common"):
        index.offer(name, "1.0")
    index.offer("other", "1.0", ["common"])
    return index


@pytest.mark.parametrize("overrides", [False, True])
def test_what_an_extra_brings_belongs_to_its_component(with_extras: Loopback, config: Config, overrides: bool) -> None:
    with_extras.offer("other", "1.0", ["common", "app==0.9"] if overrides else ["common"])
    source = pip(("app", "1.0"), overrides=overrides, extras=("default",))
    lock = resolve(release(app=source, other=pip(("other", "1.0"))), config)
    assert {item.name: item.component for item in lock.distributions} == {
        "app": "app",
        "board": "app",
        "common": "shared",
        "other": "other",
        "web": "app",
    }
    assert "require app[default]==1.0 [component app, index pypi]" in lock.inputs
    pinned = [line for line in format_lock(lock).splitlines() if line and line[0] not in "# "]
    assert pinned == ["app==1.0 \\", "board==2.0 \\", "common==1.0 \\", "other==1.0 \\", "web==1.0 \\"]


def test_an_overriding_component_of_a_named_index_keeps_its_extras(
    index: Loopback, vendor: Loopback, with_vendor: Config
) -> None:
    vendor.offer("app", "1.0", ["board; extra == 'default'"], extras=("default",))
    index.offer("board", "2.0")
    source = pip(("app", "1.0"), index="vendor", overrides=True, extras=("default",))
    assert versions(resolve(release(app=source), with_vendor)) == {"app": "1.0", "board": "2.0"}


def test_components_that_name_one_distribution_get_the_extras_of_all(with_extras: Loopback, config: Config) -> None:
    asked = release(
        one=pip(("app", "1.0"), extras=("default",)),
        two=pip(("app", "1.0"), extras=("speed-up",)),
    )
    assert {"board", "fast"} <= versions(resolve(asked, config)).keys()


def test_an_extra_that_a_distribution_does_not_have_is_refused(with_extras: Loopback, config: Config) -> None:
    with pytest.raises(ResolutionError) as error:
        resolve(release(app=pip(("app", "1.0"), extras=("defualt",))), config)
    assert error.value.message == "component app: app 1.0 has no extra 'defualt'"
    assert "correct `extras` of app" in (error.value.hint or "")


def test_an_extra_that_distributions_ask_of_each_other_in_vain_is_their_affair(
    with_extras: Loopback, config: Config
) -> None:
    with_extras.offer("fast", "1.0", ["web[gone]"])
    assert "web" in versions(resolve(release(app=pip(("app", "1.0"), extras=("speed-up",))), config))


def test_a_contradiction_within_an_extra_names_its_component(with_extras: Loopback, config: Config) -> None:
    with pytest.raises(ResolutionError, match=r"component app.* needs board>=2, but the base base has board 1"):
        resolve(release(app=pip(("app", "1.0"), extras=("default",)), base={"board": "1"}), config)
