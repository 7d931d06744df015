"""Logins as `docker login` and its helpers leave them; builders/docker/test_push has the same for engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lj_image.errors import PublishError
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
