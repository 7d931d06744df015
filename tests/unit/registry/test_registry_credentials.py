"""Logins as `docker login` and its helpers leave them; builders/docker/test_push has the same for engines."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from lj_image.errors import PublishError
from lj_image.registry.credential_helper import ask_helper
from lj_image.registry.credentials import Credentials, Login, credentials_for, login_for

AUTH = "cm9ib3Q6czplY3JldA=="  # printf robot:s:ecret | base64


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path / "config.json"


def helper(folder: Path, script: str) -> None:
    file = folder / "docker-credential-lj"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("docker.io", "docker.io"),
        ("r.example", "r.example"),
        ("https://r.example/v2/", "r.example"),
        ("localhost:5000", "localhost:5000"),
    ],
)
def test_a_login_is_found_however_its_host_is_written(key: str, host: str, docker_config: Path) -> None:
    docker_config.write_text(json.dumps({"auths": {"x.example": {"auth": AUTH}, key: {"auth": AUTH}}}))
    assert credentials_for(host) == Credentials("robot", "s:ecret")
    assert login_for(host) == Login("auths")
    assert credentials_for("other.example") is None


def test_an_identity_token_and_a_plain_password_are_logins(docker_config: Path) -> None:
    docker_config.write_text(
        json.dumps(
            {
                "auths": {
                    "a.example": {"identitytoken": "t"},
                    "b.example": {"username": "u", "password": "p"},
                    "c.example": {},
                }
            }
        )
    )
    assert credentials_for("a.example") == Credentials("", "", "t")
    assert credentials_for("b.example") == Credentials("u", "p")
    assert credentials_for("c.example") is None


def test_without_a_config_or_with_one_about_other_things_a_visit_is_anonymous(docker_config: Path) -> None:
    assert credentials_for("r.example") is None
    docker_config.write_text('{"HttpHeaders": {"X": "y"}}')
    assert credentials_for("r.example") is None
    assert login_for("r.example") == Login("none")


def test_the_config_at_home_counts_where_the_named_folder_has_none(docker_config: Path) -> None:
    home = docker_config.parent / "home" / ".docker"
    home.mkdir(parents=True)
    (home / "config.json").write_text(json.dumps({"auths": {"r.example": {"auth": AUTH}}}))
    assert credentials_for("r.example") == Credentials("robot", "s:ecret")


def test_a_helper_is_asked_for_the_key_that_docker_login_uses(docker_config: Path) -> None:
    docker_config.write_text('{"credHelpers": {"docker.io": "lj", "r.example": "lj"}}')
    helper(docker_config.parent, """read host; echo "{\\"Username\\": \\"$host\\", \\"Secret\\": \\"k\\"}" """)
    assert credentials_for("docker.io") == Credentials("https://index.docker.io/v1/", "k")
    assert credentials_for("r.example") == Credentials("r.example", "k")


def test_a_helper_without_a_login_leaves_the_files_own(docker_config: Path) -> None:
    docker_config.write_text(json.dumps({"credsStore": "lj", "auths": {"r.example": {"auth": AUTH}}}))
    for script in ("echo 'credentials not found in native keychain'; exit 1", """echo '{"Username":"","Secret":""}'"""):
        helper(docker_config.parent, script)
        assert credentials_for("r.example") == Credentials("robot", "s:ecret")


def test_what_a_login_hides_is_in_no_text(docker_config: Path) -> None:
    assert "ecret" not in f"{Credentials('u', 's:ecret', 'ecret-token')!r} {Credentials('u', 's:ecret')}"
    docker_config.write_text('{"auths": {"r.example": {"auth": "bm9jb2xvbnNlY3JldA=="}}}')
    with pytest.raises(PublishError, match=r"config\.json cannot be read") as raised:
        credentials_for("r.example")
    assert raised.value.__cause__ is None
    assert "secret" not in "".join(raised.value.lines())


# --- places and files ---


@pytest.fixture
def places(docker_config: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Every file that is looked at, in the order of looking, none of which is there."""
    folder = docker_config.parent
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(folder / "auth.json"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.delenv("DOCKER_AUTH_CONFIG", raising=False)
    (folder / "run" / "containers").mkdir(parents=True)
    return {
        "docker": docker_config,
        "named": folder / "auth.json",
        "runtime": folder / "run" / "containers" / "auth.json",
    }


def entry(username: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{username}:pw".encode()).decode()}


def test_the_first_place_that_knows_a_host_counts(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found = credentials_for("r.example")
    assert found is None
    for name in ("runtime", "named", "docker"):
        places[name].write_text(json.dumps({"auths": {"r.example": entry(name), f"{name}.example": entry("its own")}}))
        assert credentials_for("r.example") == Credentials(name, "pw")
    monkeypatch.setenv("DOCKER_AUTH_CONFIG", json.dumps({"auths": {"r.example": entry("environment")}}))
    assert credentials_for("r.example") == Credentials("environment", "pw")
    assert login_for("r.example") == Login("auths")
    for name in places:
        assert credentials_for(f"{name}.example") == Credentials("its own", "pw")


def test_a_config_in_the_environment_that_is_none_is_told_without_it(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_AUTH_CONFIG", '{"auths": {"r.example": {"auth": "hush"}}}')
    with pytest.raises(PublishError, match=r"\$DOCKER_AUTH_CONFIG cannot be read") as raised:
        credentials_for("r.example")
    assert "hush" not in "".join(raised.value.lines())
    monkeypatch.setenv("DOCKER_AUTH_CONFIG", " ")
    assert credentials_for("r.example") is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("r.example/team/stack", "repository"),
        ("r.example/team/stack/part", "repository"),
        ("r.example/team/stacker", "namespace"),
        ("r.example/team", "namespace"),
        ("r.example/teams/x", "host"),
        ("r.example", "host"),
        ("r.example:5000/team/x", "port"),
        ("docker.io/library/six", "library"),
        ("docker.io/other/six", "hub"),
    ],
)
def test_the_longest_key_that_fits_counts(docker_config: Path, place: str, expected: str) -> None:
    keys = {
        "r.example": "host",
        "r.example/team": "namespace",
        "r.example/team/stack": "repository",
        "https://r.example:5000/v2/": "port",
        "https://index.docker.io/v1/": "hub",
        "docker.io/library": "library",
    }
    docker_config.write_text(json.dumps({"auths": {key: entry(name) for key, name in keys.items()}}))
    found = credentials_for(place)
    assert found is not None
    assert found.username == expected


def test_helpers_go_before_the_store_and_that_before_the_file(docker_config: Path) -> None:
    values = {"credHelpers": {"a.example": "lj"}, "credsStore": "all", "auths": {"b.example": entry("file")}}
    docker_config.write_text(json.dumps(values))
    helper(docker_config.parent, """echo '{"Username":"helper","Secret":"s"}'""")
    store = docker_config.parent / "docker-credential-all"
    store.write_text("""#!/bin/sh\necho '{"Username":"store","Secret":"s"}'\n""")
    store.chmod(0o755)
    assert credentials_for("a.example/x") == Credentials("helper", "s")
    assert credentials_for("b.example/x") == Credentials("store", "s")
    store.write_text("#!/bin/sh\necho credentials not found in native keychain; exit 1\n")
    assert credentials_for("b.example/x") == Credentials("file", "pw")


def test_tokens_are_logins_too(docker_config: Path) -> None:
    entries = {"a.example": {"registrytoken": "rt"}, "b.example": {**entry("00000000"), "identitytoken": "it"}}
    docker_config.write_text(json.dumps({"auths": entries}))
    assert credentials_for("a.example") == Credentials("", registry_token="rt")
    assert credentials_for("b.example") == Credentials("00000000", "pw", "it")
    assert "rt" not in repr(Credentials("", registry_token="rt")).replace("Credentials", "")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no key ring; exit 1", "no key ring"),
        ("echo 'Secret: hush'; exit 1", "withheld"),
        ("exit 3", "ended with 3"),
        ('echo \'{"Username": "hush"\'', "no valid answer"),
        ("sleep 30", "did not answer"),
    ],
)
def test_a_helper_that_fails_is_told(docker_config: Path, script: str, words: str) -> None:
    helper(docker_config.parent, script)
    with pytest.raises(PublishError, match=words) as raised:
        ask_helper("docker-credential-lj", "r.example", longest_s=0.5)
    assert "hush" not in "".join(raised.value.lines())
    assert raised.value.hint == "run: docker login r.example"


def test_a_helper_that_is_not_there_or_no_program_is_told(docker_config: Path) -> None:
    with pytest.raises(PublishError, match="is not installed"):
        ask_helper("docker-credential-absent", "r.example")
    file = docker_config.parent / "docker-credential-lj"
    file.write_text("not a program")
    file.chmod(0o755)
    with pytest.raises(PublishError, match="cannot be run"):
        ask_helper("docker-credential-lj", "r.example")
