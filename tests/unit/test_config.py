from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.config import Config, ConfigFile, EndpointsConfig, RegistryConfig, Secret, Source, load_config, state_dir
from lj_image.errors import ManifestError
from lj_image.snapshot import Snapshots

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


def test_the_environment_says_where_is_kept_what_is_to_be_gone_on_with(tmp_path: Path) -> None:
    assert state_dir({"LJ_IMAGE_STATE": str(tmp_path)}) == tmp_path
    assert state_dir({}).name == "lj-image"


def test_the_config_is_a_value() -> None:
    config = Config(file=None, values=ConfigFile(), cache_dir=Path("/c"))
    with pytest.raises(AttributeError, match="cannot assign"):
        config.cache_dir = Path("/d")  # type: ignore[misc]


# --- registries ---


def read(folder: Path, text: str) -> Config:
    path = folder / "config.yaml"
    path.write_text(text)
    return load_config({"LJ_IMAGE_CONFIG": str(path)}, Snapshots(folder / "snapshots"))


def test_a_registry_is_found_by_its_host_or_by_a_pattern(tmp_path: Path) -> None:
    text = (
        "registries:\n"
        '  "registry-vpc.{region}.example": {deadline: 60}\n'
        "  registry-vpc.cn-x.example: {deadline: 90, may_lead_to: [10.1.2.3]}\n"
        '  "[::1]:5000": {plain_http: true}\n'
    )
    for _ in range(2):  # read, then taken from the snapshot
        config = read(tmp_path, text)
        assert config.registry("registry-vpc.cn-beijing.example") == RegistryConfig(deadline=60)
        assert config.registry("registry-vpc.cn-x.example") == RegistryConfig(deadline=90, may_lead_to=("10.1.2.3",))
        assert config.registry("[::1]:5000") == RegistryConfig(plain_http=True)
        for other in ("registry-vpc.cn-x.example:5000", "registry-vpcXcn-y.example", "other.example"):
            assert config.registry(other) == RegistryConfig()


def test_the_files_of_a_registry_count_from_the_configs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/nobody")
    keys = "client_certificate: ~/c.pem, client_key: /k.pem, username: u, password_file: p"
    found = read(tmp_path, f"registries: {{r.example: {{ca_bundle: certs/ca.pem, {keys}}}}}\n").registry("r.example")
    assert (found.ca_bundle, found.password_file) == (f"{tmp_path}/certs/ca.pem", f"{tmp_path}/p")
    assert (found.client_certificate, found.client_key) == ("/home/nobody/c.pem", "/k.pem")


@pytest.mark.parametrize(
    ("entry", "words", "line"),
    [
        ("{username: u}", "registries.r.example: a user name, and no place for the password", 2),
        ("{password_env: P}", "a place for a password, and no user name", 2),
        ("{client_key: k}", "a key without its certificate", 2),
        ("{plain_http: true, ca_bundle: c}", "plain http has no certificates", 2),
        ("\n    deadline: 0", "deadline", 3),
        ("\n    deadline: .inf", "deadline", 3),
        ("\n    plain_htp: true", "plain_htp", 3),
        ("\n    may_lead_to: ['https://x']", "not written as it should be", 3),
    ],
)
def test_what_is_wrong_with_a_registry_is_told_with_its_line(tmp_path: Path, entry: str, words: str, line: int) -> None:
    with pytest.raises(ManifestError, match=words) as caught:
        read(tmp_path, f"registries:\n  r.example: {entry}\n")
    assert caught.value.location is not None
    assert caught.value.location.line == line


@pytest.mark.parametrize("host", ["https://r.example", "r.example/path", "R.example", "u@r.example"])
def test_a_registry_is_named_by_its_host_alone(tmp_path: Path, host: str) -> None:
    with pytest.raises(ManifestError):
        read(tmp_path, f'registries: {{"{host}": {{plain_http: true}}}}\n')
