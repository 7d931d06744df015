"""A registry is opened as the config says: over which way, with which login, for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lj_image.config import Config, ConfigFile, RegistryConfig
from lj_image.errors import ManifestError, PublishError
from lj_image.oci.capabilities import Capabilities
from lj_image.registry.access import Access, Patience
from lj_image.registry.configured import login_of, registry_at
from lj_image.registry.credentials import Credentials, credentials_for
from lj_image.release.asking import BRIEF
from lj_image.release.registries import brief_opener, opener

HOST = "r.example:5000"


def config(file: Path | None = None, **said: Any) -> Config:
    return Config(file, ConfigFile(registries={HOST: RegistryConfig(**said)}), Path("/cache"))


def test_the_way_is_the_configs(tmp_path: Path) -> None:
    said = config(tmp_path / "config.yaml", plain_http=True, may_lead_to=("10.1.2.3",))
    takes = Capabilities("harbor")
    with registry_at(HOST, said, intent="push", capabilities=takes) as registry:
        assert registry.connection.access == Access(HOST, plain_http=True, may_lead_to=("10.1.2.3",))
        assert registry.connection.base == f"http://{HOST}/v2/"
        assert registry.capabilities == takes
        assert registry.scopes("x") == ("repository:x:pull,push",)
    with registry_at("other.example", said, intent="pull") as registry:
        assert registry.connection.access == Access("other.example")
        assert registry.scopes("x") == ("repository:x:pull",)


@pytest.mark.parametrize(
    ("asked", "said", "patient", "expected"),
    [(None, None, None, None), (5, None, None, 5), (None, 7, None, 7), (9, 7, 8, 7), (5, 7, None, 5), (9, 9, 1, 1)],
)
def test_the_earliest_deadline_counts(
    asked: float | None, said: float | None, patient: float | None, expected: float | None
) -> None:
    patience = Patience(attempts=2, deadline_s=patient)
    with opener(config(deadline=said), patience=patience, deadline_s=asked)(HOST, intent="push") as registry:
        assert registry.connection.access.patience == Patience(attempts=2, deadline_s=expected)
    with brief_opener(config(deadline=said))(HOST, Capabilities()) as registry:
        assert registry.connection.access.patience.attempts == BRIEF.attempts
        assert registry.connection.access.patience.deadline_s == (said or BRIEF.deadline_s)


def test_the_login_is_the_configs_and_read_no_sooner_than_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("first line\nsecond\n")
    by_file = config(tmp_path / "config.yaml", username="robot", password_file="password")
    assert login_of(HOST, by_file.registry(HOST))(f"{HOST}/x") == Credentials("robot", "first line")
    by_env = login_of(HOST, RegistryConfig(username="robot", password_env="LJ_TEST_PASSWORD"))
    with pytest.raises(ManifestError, match="LJ_TEST_PASSWORD is not set") as raised:
        by_env(HOST)
    assert HOST in (raised.value.hint or "")
    monkeypatch.setenv("LJ_TEST_PASSWORD", "s:ecret")
    assert by_env(HOST) == Credentials("robot", "s:ecret")
    assert login_of(HOST, RegistryConfig()) is credentials_for


@pytest.mark.parametrize(
    ("key", "content"),
    [("ca_bundle", None), ("ca_bundle", "no PEM"), ("client_certificate", None), ("client_certificate", "no PEM")],
)
def test_certificates_that_cannot_be_read_are_told_with_their_file(
    tmp_path: Path, key: str, content: str | None
) -> None:
    file = tmp_path / "certificate.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(PublishError, match=r"for r\.example:5000 cannot be read") as raised:
        registry_at(HOST, config(tmp_path / "config.yaml", **{key: "certificate.pem"}), intent="pull")
    assert str(raised.value.location) == str(file)
