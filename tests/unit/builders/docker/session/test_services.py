from __future__ import annotations

import json
from pathlib import Path

import pytest
from session_peer import Serve

from lj_image.builders.docker.session import messages, services
from lj_image.builders.docker.session.stream import RpcError


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker config with a plain login, an identity token, and a credential helper that counts its calls."""
    helper = tmp_path / "docker-credential-counting"
    helper.write_text(
        f"""#!/bin/sh
echo "$1" >>{tmp_path}/calls
read host
case $host in
broken*) echo boom >&2; exit 1;;
esac
echo '{{"ServerURL":"'$host'","Username":"helped","Secret":"by-helper"}}'
"""
    )
    helper.chmod(0o755)
    auths = {
        "plain.example": {"auth": "dXNlcjpwYXNz"},  # user:pass
        "token.example": {"auth": "dXNlcjpwYXNz", "identitytoken": "idtok"},
        "https://index.docker.io/v1/": {"auth": "aHViOnB3"},  # hub:pw
    }
    helpers = {"helped.example": "counting", "broken.example": "counting"}
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths, "credHelpers": helpers}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "login"),
    [
        ("plain.example", ("user", "pass")),
        ("token.example", ("", "idtok")),
        ("registry-1.docker.io", ("hub", "pw")),
        ("helped.example", ("helped", "by-helper")),
        ("nobody.example", ("", "")),
    ],
)
def test_logins_come_from_the_docker_config(docker_config: Path, host: str, login: tuple[str, str]) -> None:
    assert services.Credentials().of(host) == login


def test_a_helper_is_asked_once_per_session(docker_config: Path) -> None:
    credentials = services.Credentials()
    for _ in range(13):
        credentials.of("helped.example")
    assert (docker_config / "calls").read_text().split() == ["get"]


def test_a_broken_helper_fails_the_call_with_its_words(docker_config: Path) -> None:
    with pytest.raises(RpcError, match=r"broken\.example"):
        services.Credentials().of("broken.example")


def test_no_config_means_anonymous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert services.Credentials().of("any.example") == ("", "")


def test_credentials_over_the_wire(serve: Serve, docker_config: Path) -> None:
    peer = serve({services.CREDENTIALS: services.credentials_method(services.Credentials())})
    call = peer.unary(services.CREDENTIALS, b"\x0a\x0dplain.example")
    assert call.messages() == [b"\x0a\x04user\x12\x04pass"]


def test_a_secret_is_given_by_its_id_and_an_unknown_one_is_not_found(serve: Serve) -> None:
    peer = serve({services.GET_SECRET: services.secrets_method({"tok": b"\0binary\xff"})})
    call = peer.unary(services.GET_SECRET, messages.GetSecretRequest(id="tok").SerializeToString())
    assert messages.GetSecretResponse.FromString(call.messages()[0]).data == b"\0binary\xff"
    missing = peer.unary(services.GET_SECRET, messages.GetSecretRequest(id="zz").SerializeToString())
    assert (missing.status, missing.error) == (5, "secret zz not found")
