"""Machines with one thing wrong, each: what is found, how it is mended, and that nothing else is hidden by it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from lj_image.config import Config, ConfigFile, EndpointsConfig, RegistryConfig, Secret, Source
from lj_image.doctor import indexes, machine
from lj_image.doctor.engine import engine
from lj_image.doctor.examine import examine
from lj_image.doctor.finding import Finding, free_space, ok
from lj_image.doctor.registries import Place, judged, places, registry
from lj_image.doctor.settings import settings
from lj_image.errors import EngineError, LjImageError, PublishError, UsageError
from lj_image.lock.http import Address
from lj_image.lock.reach import Reach, reach
from lj_image.registry.credentials import Login, login_for
from samples.tiny import RELEASE
from unit.lock.loopback import Loopback, start

SECRET = "correct-horse"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    loopback = Loopback()
    server = start(loopback)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield loopback
    server.shutdown()
    server.server_close()


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Return a function that writes the docker config."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "docker").mkdir()

    def write(values: object) -> None:
        (tmp_path / "docker/config.json").write_text(json.dumps(values))

    return write


def config_with(tmp_path: Path, **values: object) -> Config:
    return Config(None, ConfigFile(**values), tmp_path / "cache")  # type: ignore[arg-type]


def states(findings: object) -> list[str]:
    return [finding.state for finding in findings]  # type: ignore[attr-defined]


# --- how checks run ---


def test_a_check_that_fails_or_breaks_or_hangs_stops_no_other() -> None:
    for_ever = threading.Event()

    def fails() -> Iterator[Finding]:
        raise EngineError("no engine", hint="start it")
        yield

    def breaks() -> Iterator[Finding]:
        raise ZeroDivisionError
        yield

    def hangs() -> Iterator[Finding]:
        for_ever.wait(60)
        yield ok("late", "never seen")

    checks = {"a": fails, "b": hangs, "c": breaks, "d": lambda: [ok("d", "fine")]}
    found = examine(checks, deadline_s=0.5)
    for_ever.set()
    assert [finding.check for finding in found] == ["a", "b", "c", "d"]
    assert states(found) == ["problem", "problem", "problem", "ok"]
    assert (found[0].found, found[0].hint) == ("no engine", "start it")
    assert found[1].found == "no answer in 0 s"
    assert "ZeroDivisionError" in found[2].found


def test_what_a_check_found_before_it_failed_gives_way_to_the_failure() -> None:
    def half() -> Iterator[Finding]:
        yield ok("half", "fine so far")
        raise EngineError("went away")

    assert states(examine({"half": half})) == ["problem"]


@pytest.mark.parametrize(("free", "state"), [(100, "ok"), (5, "warning"), (1, "problem")])
def test_free_space_is_judged_by_what_a_release_takes(free: int, state: str) -> None:
    assert free_space("disk", free, "/x", wanted_bytes=10, needed_bytes=2).state == state


# --- the machine ---


def test_a_cache_that_cannot_be_written_to_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = machine.cache(Config(None, ConfigFile(), tmp_path / "file" / "cache"))
    assert found.state == "problem"
    assert "LJ_IMAGE_CACHE" in (found.hint or "")


def test_a_cache_is_left_as_it_was(tmp_path: Path) -> None:
    first, _ = machine.cache(config_with(tmp_path))
    assert first.state == "ok"
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_proxys_password_is_not_shown() -> None:
    (found,) = machine.proxies({"https_proxy": f"http://me:{SECRET}@proxy.example:3128", "NO_PROXY": "localhost"})
    assert found.state == "ok"
    assert found.found == "HTTPS_PROXY http://proxy.example:3128; not for localhost"


def test_a_proxy_that_would_be_asked_for_local_registries_is_a_warning() -> None:
    (found,) = machine.proxies({"HTTPS_PROXY": "http://proxy.example:3128"})
    assert found.state == "warning"
    assert "NO_PROXY" in (found.hint or "")
    (found,) = machine.proxies({"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": "*"})
    assert "scheme" in (found.hint or "")
    assert states(machine.proxies({})) == ["ok"]


def test_certificates_that_cannot_be_read_are_a_problem(tmp_path: Path) -> None:
    with pytest.raises(LjImageError, match="SSL_CERT_FILE names"):
        list(machine.certificates(config_with(tmp_path), {"SSL_CERT_FILE": str(tmp_path / "absent.pem")}))


def test_a_bundle_for_builds_that_is_absent_is_a_problem(tmp_path: Path) -> None:
    from lj_image.config import BuildConfig

    config = config_with(tmp_path, build=BuildConfig(ca_bundle=str(tmp_path / "absent.pem")))
    assert states(machine.certificates(config, {})) == ["ok", "problem"]


def test_without_git_a_warning_and_without_uv_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert states(machine.git()) == ["warning"]
    monkeypatch.setattr(machine, "uv_program", lambda: str(tmp_path / "uv"))
    assert states(machine.uv()) == ["problem"]


# --- the config ---


def test_secrets_are_said_to_be_set_and_never_shown(tmp_path: Path) -> None:
    config = config_with(
        tmp_path,
        indexes={"vendor": Source("https://i.example", "me", "WORD"), "other": Source("https://o.example", "me", "NO")},
        secrets={"token": Secret(env="TOKEN"), "absent": Secret(env="NO"), "file": Secret(file=str(tmp_path / "f"))},
        endpoints=EndpointsConfig({"a.example": "b.example"}),
    )
    found = list(settings(config, {"WORD": SECRET, "TOKEN": SECRET}))
    assert [(item.check, item.state) for item in found] == [
        ("config", "ok"),
        ("rule in force", "ok"),
        ("indexes.vendor", "ok"),
        ("indexes.other", "problem"),
        ("secrets.token", "ok"),
        ("secrets.absent", "warning"),
        ("secrets.file", "warning"),
    ]
    assert SECRET not in str(found)
    assert found[3].hint == "export NO=…"


def test_a_password_in_a_file_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "word"
    config = config_with(tmp_path, archives={"kits": Source("https://a.example", "me", None, str(file))})
    assert [item.found for item in settings(config, {})][1].endswith("no such file")
    file.write_text("")
    assert [item.found for item in settings(config, {})][1].endswith("empty")
    file.write_text(SECRET)
    assert states(settings(config, {})) == ["ok", "ok"]


# --- indexes ---


def test_an_index_that_answers_is_well_even_without_the_project_that_is_asked_for(
    index: Loopback, tmp_path: Path
) -> None:
    config = config_with(tmp_path, indexes={"pypi": Source(index.simple)})
    assert indexes.names(config) == ("pypi",)
    assert states(indexes.index("pypi", config)) == ["ok"]
    assert len(index.asked("/simple/pip/")) == 1


def test_an_index_that_refuses_names_the_place_of_its_password(
    index: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.credentials = ("me", SECRET)
    monkeypatch.setenv("WORD", "wrong")
    (found,) = indexes.index("vendor", config_with(tmp_path, indexes={"vendor": Source(index.simple, "me", "WORD")}))
    assert (found.state, found.hint) == ("problem", "check user and password of `indexes.vendor`")
    monkeypatch.setenv("WORD", SECRET)
    (found,) = indexes.index("vendor", config_with(tmp_path, indexes={"vendor": Source(index.simple, "me", "WORD")}))
    assert found.state == "ok"
    assert SECRET not in str(found)


def test_an_index_that_nobody_serves_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (found,) = indexes.index("pypi", config_with(tmp_path, indexes={"pypi": Source("http://127.0.0.1:9/simple")}))
    assert found.state == "problem"
    assert "http://127.0.0.1:9/simple is not reached" in found.found


def test_a_folder_can_be_an_index_or_hold_archives(tmp_path: Path) -> None:
    there, absent = tmp_path.as_uri(), (tmp_path / "absent").as_uri()
    config = config_with(tmp_path, indexes={"a": Source(there), "b": Source(absent)}, archives={"c": Source(absent)})
    assert states(indexes.index("a", config)) == ["ok"]
    assert states(indexes.index("b", config)) == ["problem"]
    assert states(indexes.archives("c", config)) == ["problem"]


def test_a_server_of_archives_may_not_like_a_folders_name(index: Loopback, tmp_path: Path) -> None:
    assert states(indexes.archives("kits", config_with(tmp_path, archives={"kits": Source(index.url)}))) == ["ok"]


def test_a_name_that_leads_nowhere_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    answer = reach("https://no-such-host.invalid/v2/", Address("https://no-such-host.invalid"))
    assert (answer.status, answer.has_name) == (None, False)
    assert reach("https://:::", Address("https://:::")).status is None


# --- registries ---


def test_a_helper_that_is_not_installed_is_found(docker_config: Callable[[object], None]) -> None:
    docker_config(
        {"credHelpers": {"r.example": "nowhere"}, "auths": {"https://a.example/v1/": {"auth": "bWU6d29yZA=="}}}
    )
    assert login_for("r.example") == Login("credHelpers", "docker-credential-nowhere", False)
    assert login_for("a.example") == Login("auths")
    assert login_for("o.example") == Login("none")
    docker_config({"credsStore": "absent"})
    assert login_for("o.example") == Login("credsStore", "docker-credential-absent", False)


def test_a_store_concerns_every_host_and_a_helper_its_own() -> None:
    place, answer = Place("r.example", "public"), Reach(401)
    assert judged(place, answer, Login("credsStore", "docker-credential-x", False)).state == "problem"
    found = judged(place, answer, Login("credHelpers", "docker-credential-x", False))
    assert (found.state, found.found) == ("warning", "r.example: docker-credential-x is not installed")


@pytest.mark.parametrize(
    ("purpose", "answer", "kind", "state", "words"),
    [
        ("public", Reach(200), "none", "ok", "answers; no login"),
        ("public", Reach(401), "auths", "ok", "login in auths"),
        ("public", Reach(401), "none", "warning", "wants a login"),
        ("base", Reach(401), "none", "ok", "answers"),
        ("public", Reach(503), "auths", "warning", "answers 503"),
        ("public", Reach(None, "refused"), "auths", "warning", "not reached from here: refused"),
        ("public", Reach(None, "x", False), "auths", "warning", "its name leads nowhere"),
        ("vpc", Reach(None, "x", False), "auths", "ok", "not reachable from here, as a VPC's address is"),
        ("vpc", Reach(401), "none", "warning", "wants a login"),
    ],
)
def test_a_registry_is_judged_by_what_it_is_for(purpose: str, answer: Reach, kind: str, state: str, words: str) -> None:
    found = judged(Place("r.example", purpose), answer, Login(kind))  # type: ignore[arg-type]
    assert found.state == state
    assert words in found.found


def test_an_unreadable_docker_config_is_told(docker_config: Callable[[object], None], tmp_path: Path) -> None:
    docker_config({})
    (tmp_path / "docker/config.json").write_text("{")
    with pytest.raises(PublishError, match="cannot be read"):
        list(registry(Place("127.0.0.1:9", "public")))


def test_a_registry_on_this_machine_is_asked_without_tls(
    index: Loopback, docker_config: Callable[[object], None]
) -> None:
    docker_config({})
    host = index.url.removeprefix("http://").partition("/")[0]
    (found,) = registry(Place(host, "public"))
    assert found.found == f"{host}: answers 404"
    assert len(index.asked("/v2/")) == 1


def test_a_registry_is_asked_as_the_config_says(index: Loopback, docker_config: Callable[[object], None]) -> None:
    docker_config({})
    host = index.url.removeprefix("http://").partition("/")[0]
    (found,) = registry(Place(host, "public", said=RegistryConfig(plain_http=False, username="u", password_env="P")))
    assert "not reached from here" in found.found  # by https
    assert "login in config" in found.found


def test_each_host_is_looked_at_once_and_where_it_is_rewritten_to(
    write_catalog: Callable[..., Catalog], tmp_path: Path
) -> None:
    catalog = write_catalog()
    assert places(catalog, config_with(tmp_path), ()) == (
        Place("registry.example", "base"),
        Place("public.example", "public"),
    )
    rules = {"vpc.{region}.example": "localhost:5000/{region}"}
    config = config_with(tmp_path, endpoints=EndpointsConfig(rules), mirrors={"registry.example": "m.example/x"})
    assert places(catalog, config, ("all",))[0] == Place("m.example", "base", "registry.example")
    assert places(catalog, config, ("north",))[2] == Place("localhost:5000", "public", "vpc.north.example")
    assert len(places(catalog, config, ("all",))) == 3
    with pytest.raises(UsageError, match="unknown region 'nroth'"):
        places(catalog, config, ("nroth",))


# --- the command ---


@pytest.fixture
def examined(
    write_catalog: Callable[..., Catalog],
    index: Loopback,
    docker_config: Callable[[object], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, dict[str, list[str]]]]:
    """Return a function that runs the command on a machine without an engine, and gives states by check."""
    docker_config({})
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.simple)  # where there is no config, nobody outside is asked
    monkeypatch.setattr("lj_image.doctor.registries.reach", lambda *_: Reach(None, "refused"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LJ_IMAGE_CONFIG", str(tmp_path / "config.yaml"))
    (tmp_path / "config.yaml").write_text(f"indexes: {{pypi: {{url: {index.simple}}}}}\n")

    def examine_it(*arguments: str) -> tuple[int, dict[str, list[str]]]:
        write_catalog()
        code = run(["--images", str(tmp_path / "images"), "doctor", "--json", *arguments])
        printed = json.loads(capsys.readouterr().out)
        found: dict[str, list[str]] = {}
        for item in printed["findings"]:
            found.setdefault(item["check"], []).append(item["state"])
        assert printed["ok"] is (code == 0)
        return code, found

    return examine_it


def test_without_an_engine_the_rest_is_still_found(
    examined: Callable[..., tuple[int, dict[str, list[str]]]],
) -> None:
    code, found = examined()
    assert code == 1
    assert found["engine"] == ["problem"]
    assert found["catalog"] == ["ok"]
    assert found["index pypi"] == ["ok"]
    assert found["registry"] == ["warning", "warning"]


def test_without_an_engine_it_says_what_can_be_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    (found,) = engine()
    assert (found.state, found.hint is not None) == ("problem", True)
    assert "set DOCKER_HOST" in str(found.hint)
    assert "lj-image build --builder oci" in str(found.hint)


def test_a_broken_config_does_not_hide_the_rest(
    examined: Callable[..., tuple[int, dict[str, list[str]]]], tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("indexs: {}\nindexes: {pypi: {url: http://127.0.0.1:9}}\n")
    _, found = examined()
    assert found["config"] == ["problem"]
    assert found["catalog"] == ["ok"]


def test_a_config_that_is_named_and_absent_is_a_problem(
    examined: Callable[..., tuple[int, dict[str, list[str]]]], tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").unlink()
    assert examined()[1]["config"] == ["problem"]


def test_outside_of_a_project_the_machine_is_looked_at_all_the_same(
    examined: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "problem  catalog" in shown
    assert "ok       uv" in shown
    assert shown.splitlines()[-1].startswith("problems: 2, warnings: ")


def test_a_region_that_nobody_has_is_exit_code_2(
    examined: object, write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--images", str(write_catalog().root), "doctor", "--region", "nroth"]) == 2
    assert "did you mean north" in capsys.readouterr().err


def test_a_catalog_with_faults_shows_the_first_ones(
    examined: object, write_catalog: Callable[..., Catalog], capsys: pytest.CaptureFixture[str]
) -> None:
    images = str(write_catalog(r25_02=RELEASE.replace("tool:", "tol:")).root)
    assert run(["--images", images, "doctor"]) == 1
    assert "unknown component 'tol'" in capsys.readouterr().out
