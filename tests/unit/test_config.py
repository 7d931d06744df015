from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.config import Config, ConfigFile, EndpointsConfig, Secret, Source, load_config
from lj_image.errors import ManifestError

HOST = "acs-registry-vpc.cn-beijing.cr.aliyuncs.com"


def test_without_a_file_everything_has_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = load_config({})
    assert config.file is None
    assert config.in_force() == ()


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot read"):
        load_config({"LJ_IMAGE_CONFIG": str(tmp_path / "absent.yaml")})


def test_an_unknown_key_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("mirors: {nvcr.io: local:5000}\n")
    with pytest.raises(ManifestError) as caught:
        load_config({"LJ_IMAGE_CONFIG": str(path)})
    assert caught.value.hint == "did you mean mirrors?"
    assert str(caught.value.location).endswith("config.yaml:1:1")


def test_rules_that_change_an_address_are_told(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("mirrors: {nvcr.io: 'local:5000'}\nendpoints: {rewrite: {a.example: b.example}}\n")
    config = load_config({"LJ_IMAGE_CONFIG": str(path)})
    assert config.in_force() == ("mirror nvcr.io → local:5000", "endpoint a.example → b.example")
    assert config.mirrored("nvcr.io/nvidia/pytorch:25.01-py3") == "local:5000/nvidia/pytorch:25.01-py3"
    assert config.mirrored("quay.example/x:1") == "quay.example/x:1"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({HOST: "local:5000/exact"}, "local:5000/exact"),
        ({"acs-registry-vpc.{region}.cr.aliyuncs.com": "local:5000/vpc-{region}"}, "local:5000/vpc-cn-beijing"),
        ({"other.{region}.example": "local:5000"}, HOST),
        ({"acs-registry-vpcX{region}.cr.aliyuncs.com": "local:5000"}, HOST),  # a dot is a dot
    ],
)
def test_an_endpoint_is_rewritten_by_the_rule_that_fits(rule: dict[str, str], expected: str) -> None:
    assert EndpointsConfig(rewrite=rule).rewritten(HOST, "cn-beijing") == expected


def test_a_password_in_an_address_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("indexes: {vendor: {url: 'https://user:secret@index.example/simple'}}\n")
    with pytest.raises(ManifestError, match="not written as it should be") as caught:
        load_config({"LJ_IMAGE_CONFIG": str(path)})
    assert "secret" not in str(caught.value.lines())


def test_a_user_without_a_place_for_the_password_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("indexes:\n  vendor: {url: 'https://v.example/simple', username: u}\n")
    with pytest.raises(ManifestError, match="no place for the password"):
        load_config({"LJ_IMAGE_CONFIG": str(path)})


def test_a_password_comes_from_environment_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_PASSWORD", "from-env")
    (tmp_path / "password").write_text("from-file\nnot this\n")
    url = "https://v.example/simple"
    assert Source(url=url, password_env="VENDOR_PASSWORD").password() == "from-env"
    assert Source(url=url, password_file=str(tmp_path / "password")).password() == "from-file"
    with pytest.raises(ManifestError, match="ABSENT is not set"):
        Source(url=url, password_env="ABSENT").password()
    with pytest.raises(ManifestError, match="cannot be read"):
        Source(url=url, password_file=str(tmp_path / "absent")).password()


def test_a_secret_that_is_not_there_says_where_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="'token' is not there") as caught:
        Secret(env="ABSENT_TOKEN").read("token")
    assert caught.value.hint == "set the environment variable ABSENT_TOKEN"
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(ManifestError, match="is empty"):
        Secret(file=str(empty)).read("token")


def test_the_cache_is_where_the_config_or_the_environment_says(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"cache: {tmp_path}/from-config\n")
    environ = {"LJ_IMAGE_CONFIG": str(path), "LJ_IMAGE_CACHE": "/elsewhere"}
    assert load_config(environ).cache_dir == tmp_path / "from-config"
    path.write_text("variant: open\n")
    assert load_config(environ).cache_dir == Path("/elsewhere")


def test_the_config_is_a_value() -> None:
    config = Config(file=None, values=ConfigFile(), cache_dir=Path("/c"))
    with pytest.raises(AttributeError, match="cannot assign"):
        config.cache_dir = Path("/d")  # type: ignore[misc]
