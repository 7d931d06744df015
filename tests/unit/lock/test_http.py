from __future__ import annotations

import time
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest

from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import LjImageError
from lj_image.lock.http import Address, Client, bare, ssl_context, wait_after
from lj_image.lock.index import index_addresses


def test_password_of_an_address_is_split_off_and_not_shown() -> None:
    address = Address.parse("https://robot:s%2Fcret@index.example:8443/simple")
    assert (address.url, address.username, address.password) == ("https://index.example:8443/simple", "robot", "s/cret")
    assert "cret" not in repr(address)
    assert bare("https://u:p@host.example/a?token=1#b") == "https://host.example/a"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://index.example/files/a.whl", True),
        ("https://index.example:443/files/a.whl", True),
        ("http://index.example/files/a.whl", False),
        ("https://index.example:8443/files/a.whl", False),
        ("https://files.example/a.whl", False),
    ],
)
def test_password_is_told_to_its_own_origin_only(url: str, told: bool) -> None:
    address = Address("https://index.example/simple", "robot", "secret")
    assert (address.auth_for(url) is not None) is told


@pytest.mark.parametrize(
    ("status", "headers", "low", "high"),
    [
        (503, {"Retry-After": "7"}, 7, 7),
        (429, {"Retry-After": "86400"}, 60, 60),
        (429, {"Retry-After": formatdate(time.time() + 3600)}, 60, 60),
        (429, {"Retry-After": formatdate(0)}, 0, 0),
        (503, {"Retry-After": "soon"}, 0, 1),
        (500, {}, 0, 1),
    ],
)
def test_wait_is_what_the_server_says_within_reason(
    status: int, headers: dict[str, str], low: float, high: float
) -> None:
    wait_s = wait_after(httpx.Response(status, headers=headers), 0)
    assert wait_s is not None
    assert low <= wait_s <= high


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_final_refusal_is_not_tried_again(status: int) -> None:
    assert wait_after(httpx.Response(status, headers={"Retry-After": "1"}), 0) is None


def test_certificates_are_those_that_requests_is_told(tmp_path: Path) -> None:
    import certifi

    bundle = tmp_path / "ca.pem"
    bundle.write_text(
        Path(certifi.where()).read_text().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    )
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT"):
        assert len(ssl_context({name: str(bundle)}).get_ca_certs()) == 1
    assert len(ssl_context({}).get_ca_certs()) > 10


def test_certificates_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(LjImageError, match=r"SSL_CERT_FILE names .*, which cannot be read"):
        ssl_context({"SSL_CERT_FILE": str(tmp_path / "absent.pem")})


def test_default_index_is_that_of_the_user_s_tools() -> None:
    config = Config(file=None, values=ConfigFile(), cache_dir=Path())

    def urls(**environ: str) -> list[str]:
        return [address.url for address in index_addresses("pypi", config, environ)]

    assert urls(PIP_INDEX_URL="http://pip.example/simple") == ["http://pip.example/simple"]
    assert urls(PIP_INDEX_URL="http://pip.example", UV_INDEX_URL="http://uv.example") == ["http://uv.example"]
    assert urls(UV_DEFAULT_INDEX="own=http://a.example", UV_INDEX="x=http://b.example") == [
        "http://b.example",
        "http://a.example",
    ]
    [default] = urls()
    assert default.startswith("https://")


def test_index_of_the_config_goes_before_the_tools_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "secret")
    source = Source(url="http://a.example/simple", username="robot", password_env="WORD")
    config = Config(file=None, values=ConfigFile(indexes={"pypi": source}), cache_dir=Path())
    assert index_addresses("pypi", config, {"UV_DEFAULT_INDEX": "http://b.example"}) == (
        Address("http://a.example/simple", "robot", "secret"),
    )


def test_a_file_is_read_whatever_hosts_go_without_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    (tmp_path / "kit.tar").write_bytes(b"kit")
    url = (tmp_path / "kit.tar").as_uri()
    with Client({}) as client, client.stream(url, Address(url)) as response:
        assert response.read() == b"kit"
