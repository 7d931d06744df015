from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from lj_image.cli.why import lines_of
from lj_image.errors import UsageError
from lj_image.lock.inputs import inputs_of
from lj_image.lock.lock import Artifact, Lock, LockedDistribution
from lj_image.lock.lockfile import lock_path, with_digest, write_lock
from lj_image.lock.metadata import extras_in_use, marker_environment, requirements_on, stored_metadata
from lj_image.lock.store import ArtifactStore
from lj_image.lock.why import all_ways, shortest, why
from unit.lock.loopback import sdist, wheel
from unit.lock.releases import pip, release

RELEASE = release(
    vllm=pip(("vllm", "0.7.2")),
    torch=pip(("torch", "2.5.1")),
    cudnn=pip(("nvidia-cudnn-cu12", "9.7.0"), overrides=True),
    base={"pip": "23.0", "wheel": "0.38"},
    protected=("pip",),
)
REQUIRES = {
    "vllm": ("0.7.2", ["torch==2.5.1", "numpy<2.0", 'outlines>=0.1; python_version >= "3.8"']),
    "torch": ("2.5.1", ["nvidia-cudnn-cu12==9.1.0", "sympy==1.13.1"]),
    "outlines": ("0.1.11", ["numpy"]),
    "numpy": ("1.26.4", []),
    "sympy": ("1.13.1", []),
    "nvidia-cudnn-cu12": ("9.7.0", []),
}
REQUIRED_BY = {
    "vllm": (),
    "torch": ("vllm",),
    "outlines": ("vllm",),
    "numpy": ("outlines", "vllm"),
    "sympy": ("torch",),
    "nvidia-cudnn-cu12": ("torch",),
}


@pytest.fixture
def lock(store: ArtifactStore) -> Lock:
    """Return a lock whose wheels are in the store."""

    def locked(name: str) -> LockedDistribution:
        version, requires = REQUIRES[name]
        file, content = wheel(name, version, requires)
        artifact = store.add([content], file, "wheel")
        return LockedDistribution(name, version, artifact, "pypi", "shared", REQUIRED_BY[name])

    return Lock(RELEASE.key, (), tuple(locked(name) for name in sorted(REQUIRES)), (), "")


def test_shortest_way_from_each_component_ends_at_the_nearest_one() -> None:
    named = {"vllm": "vllm", "torch": "torch", "cudnn": "cudnn"}
    assert shortest(REQUIRED_BY, named, "sympy") == (("torch", "sympy"),)
    assert shortest(REQUIRED_BY, named, "numpy") == (("vllm", "numpy"),)


def test_what_a_component_names_itself_is_its_own_and_also_required_by_others() -> None:
    assert shortest(REQUIRED_BY, {"vllm": "vllm", "torch": "torch"}, "torch") == (("torch",), ("vllm", "torch"))


def test_every_way_is_shown_shortest_first() -> None:
    ways = list(all_ways(REQUIRED_BY, {"vllm": "vllm"}, "numpy"))
    assert ways == [("vllm", "numpy"), ("vllm", "outlines", "numpy")]


def test_a_circle_of_requirements_ends() -> None:
    circle = {"a": ("b",), "b": ("a", "root"), "root": ()}
    assert list(all_ways(circle, {"root": "one"}, "a")) == [("root", "b", "a")]
    assert shortest(circle, {"root": "one"}, "a") == (("root", "b", "a"),)


def test_a_dense_graph_is_given_up_and_not_waited_for() -> None:
    names = [f"n{number}" for number in range(30)]
    dense = {name: tuple(other for other in names if other != name) for name in names}
    assert list(all_ways(dense, {}, "n0")) == []


def test_links_say_how_each_asks_for_the_next(lock: Lock, store: ArtifactStore) -> None:
    (found,) = why(RELEASE, lock, "NumPy", store, every=True)
    assert found.remark == ""
    assert [[link.requirement for link in chain.links] for chain in found.chains] == [
        [None, "numpy<2.0"],
        [None, "outlines>=0.1", "numpy"],
    ]


def test_an_override_says_what_it_overrules(lock: Lock, store: ArtifactStore) -> None:
    (found,) = why(RELEASE, lock, "cudnn", store)
    assert "an override" in found.remark
    (_, link) = found.chains[1].links
    assert (link.requirement, link.followed) == ("nvidia-cudnn-cu12==9.1.0", False)


def test_without_the_files_the_chains_are_still_there(lock: Lock, tmp_path: Path) -> None:
    (found,) = why(RELEASE, lock, "sympy", ArtifactStore(tmp_path / "empty"))
    assert [link.requirement for link in found.chains[0].links] == [None, None]


def test_a_package_of_the_base_says_so(lock: Lock, store: ArtifactStore) -> None:
    (protected,), (other,) = why(RELEASE, lock, "pip", store), why(RELEASE, lock, "wheel", store)
    assert "is protected" in protected.remark
    assert other.remark == "comes with the base base"


def test_an_unknown_name_names_the_closest(lock: Lock, store: ArtifactStore) -> None:
    with pytest.raises(UsageError, match=r"nothing in 25\.02-open is called 'nump'") as caught:
        why(RELEASE, lock, "nump", store)
    assert caught.value.hint == "did you mean numpy?"


ENVIRONMENT = marker_environment(RELEASE)


def test_requirements_of_extras_count_only_where_nothing_else_asks() -> None:
    metadata = "Provides-Extra: fast\nRequires-Dist: a<3\nRequires-Dist: a<2; extra == 'fast'\n"
    metadata += "Requires-Dist: b<2; extra == 'fast'\nRequires-Dist: c<2; sys_platform == 'win32'\n"
    assert [str(item.specifier) for item in requirements_on("a", metadata, ENVIRONMENT)] == ["<3"]
    assert [str(item.specifier) for item in requirements_on("b", metadata, ENVIRONMENT)] == ["<2"]
    assert requirements_on("c", metadata, ENVIRONMENT) == ()


def test_of_extras_those_count_that_a_component_asks_for() -> None:
    metadata = "Name: tool\nProvides-Extra: all\nProvides-Extra: Fast_Path\nProvides-Extra: safe\n"
    metadata += "Requires-Dist: a<2; extra == 'fast-path'\nRequires-Dist: a<3; extra == 'safe'\n"
    metadata += "Requires-Dist: Tool[fast_path]; extra == 'all'\n"
    asked = {extra: requirements_on("a", metadata, ENVIRONMENT, (extra,)) for extra in ("all", "fast-path", "safe")}
    assert {extra: [str(item.specifier) for item in items] for extra, items in asked.items()} == {
        "all": ["<2"],
        "fast-path": ["<2"],
        "safe": ["<3"],
    }
    assert extras_in_use(metadata, ENVIRONMENT, ("all",)) == {"all", "fast-path"}


def test_a_link_says_by_which_extra_it_comes(store: ArtifactStore) -> None:
    requires = ["both", 'both>1; extra == "default"', 'board>=2; extra == "default"', 'fast; extra == "speed"']
    wheels = {
        "ray": wheel("ray", "2.42.1", requires, extras=("default", "speed")),
        **{name: wheel(name, "2.0", ['deep; extra == "x"'], extras=("x",)) for name in ("board", "both", "deep")},
    }
    via = {"board": ("ray",), "both": ("ray",), "deep": ("board",)}
    locked = tuple(
        LockedDistribution(
            name,
            file.split("-")[1],
            store.add([content], file, "wheel"),
            "pypi",
            "ray",
            via.get(name, ()),
        )
        for name, (file, content) in sorted(wheels.items())
    )
    asked = release(ray=pip(("ray", "2.42.1"), extras=("default",)))
    lock = Lock(asked.key, (), locked, (), "")
    drawn = {name: list(lines_of(why(asked, lock, name, store)[0])) for name in ("both", "deep")}
    assert drawn["deep"] == [
        "deep 2.0  [layer of ray]",
        "component ray",
        "└── ray[default] 2.42.1",
        "    └── board 2.0  (board>=2)  by the extra default",
        "        └── deep 2.0  (deep)  by the extra x",
    ]
    assert drawn["both"][-1] == "    └── both 2.0  (both, both>1)"
    (explained,) = why(asked, lock, "board", store)
    assert explained.to_json()["chains"][0]["links"][1]["extras"] == ["default"]


def test_markers_mean_the_base_and_not_this_machine() -> None:
    arm = release(architecture="arm64", a=pip(("a", "1")))
    metadata = "Requires-Dist: a<2; platform_machine == 'aarch64' and python_version == '3.11'\n"
    assert requirements_on("a", metadata, marker_environment(arm))
    assert not requirements_on("a", metadata, ENVIRONMENT)


def test_a_line_that_is_no_requirement_is_passed_over() -> None:
    assert len(requirements_on("a", "Requires-Dist: a (>=1.*\nRequires-Dist: a>1\n", ENVIRONMENT)) == 1


def test_sdists_count_only_when_their_requirements_are_settled(store: ArtifactStore) -> None:
    file, content = sdist("tool", "1.0")  # metadata 2.2
    assert "Name: tool" in (stored_metadata(store.add([content], file, "sdist"), store) or "")


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive at all"])
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_file_that_is_no_archive_says_nothing(store: ArtifactStore, content: bytes, kind: str) -> None:
    assert stored_metadata(store.add([content], "a", kind), store) is None  # type: ignore[arg-type]
    assert stored_metadata(Artifact("b", 1, "0" * 64, kind), store) is None  # type: ignore[arg-type]


@pytest.fixture
def project(
    write_catalog: Callable[..., Catalog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Return a function that runs a command in a catalog whose open variant is locked, with one wheel in the cache."""
    from lj_image.catalog.resolve import resolve
    from lj_image.config import Config, ConfigFile

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    catalog = write_catalog()
    tiny = resolve(catalog, Config(None, ConfigFile(), tmp_path / "cache"), "25.02", variant="open")
    store = ArtifactStore(tmp_path / "cache")
    asks = {"tool": ["helper>=2"], "lib-open": ["helper", "middle"], "middle": ["helper<3"]}
    via = {"helper": ("lib-open", "middle", "tool"), "middle": ("lib-open",)}
    versions = {"kit-core": "12.8.57", "kit-extra": "12.8.61", "tool": "1.4.2", "lib-open": "2.23.4"}
    locked = []
    for name, version in sorted({**versions, "helper": "2.0", "middle": "1.0"}.items()):
        file, content = wheel(name, version, asks.get(name, ()))
        locked.append(
            LockedDistribution(name, version, store.add([content], file, "wheel"), "pypi", "shared", via.get(name, ()))
        )
    write_lock(with_digest(Lock(tiny.key, inputs_of(tiny), tuple(locked), (), "")), lock_path(tiny))
    return lambda *arguments: run(["--images", str(catalog.root), *arguments])


def test_the_tree_draws_common_beginnings_once(project: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert project("why", "25.02", "helper", "--variant", "open", "--all") == 0
    assert capsys.readouterr().out.splitlines() == [
        "helper 2.0  [layer of shared]",
        "component library",
        "└── lib-open 2.23.4",
        "    ├── helper 2.0  (helper)",
        "    └── middle 1.0  (middle)",
        "        └── helper 2.0  (helper<3)",
        "component tool",
        "└── tool 1.4.2",
        "    └── helper 2.0  (helper>=2)",
    ]


def test_json_has_every_chain(project: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert project("why", "25.02", "kit", "--variant", "open", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["release"] == "25.02-open"
    assert [item["name"] for item in printed["explanations"]] == ["kit-core", "kit-extra"]
    assert printed["explanations"][0]["chains"][0]["component"] == "kit"
    assert project("why", "25.02", "runtime", "--variant", "open", "--json") == 0
    assert json.loads(capsys.readouterr().out)["explanations"][0]["origin"] == "component"


def test_an_unknown_name_is_exit_code_2(project: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert project("why", "25.02", "hepler", "--variant", "open") == 2
    assert "did you mean helper?" in capsys.readouterr().err
