"""Which builder makes an image."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lj_image.builders.docker import engine
from lj_image.errors import EngineError, UsageError
from lj_image.release.builder_choice import BuilderName, choose_builder, only_oci

NOTHING = only_oci(outputs=(), base=None, compression=None, is_lazy=False, platform=None)


def unasked() -> None:
    pytest.fail("an engine was asked for")


def test_an_engine_that_answers_is_taken_and_none_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "connect", lambda: SimpleNamespace(close=lambda: None))
    assert choose_builder("auto", NOTHING).name == "auto"

    def refuse() -> None:
        raise EngineError("no engine answers at unix:///nowhere")

    monkeypatch.setattr(engine, "connect", refuse)
    choice = choose_builder("auto", NOTHING)
    assert (choice.name, choice.reason) == ("oci", "no engine answers at unix:///nowhere")


@pytest.mark.parametrize("name", ["docker", "docker-classic", "oci"])
def test_what_is_asked_for_is_taken_without_asking_an_engine(
    name: BuilderName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "connect", unasked)
    assert choose_builder(name, NOTHING).name == name


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"outputs": ("oci:x",)}, "--output"),
        ({"base": "x.tar"}, "--base"),
        ({"compression": "gzip"}, "--compression"),
        ({"is_lazy": True}, "--lazy"),
        ({"platform": "linux/amd64,linux/arm64"}, "--platform with several platforms"),
    ],
)
def test_options_that_need_the_assembler_choose_it_and_fit_no_other(
    options: dict[str, object], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "connect", unasked)
    plain: dict[str, object] = {"outputs": (), "base": None, "compression": None, "is_lazy": False, "platform": None}
    asked = only_oci(**plain | options)  # type: ignore[arg-type]
    assert asked == (named,)
    assert choose_builder("auto", asked).reason == f"for {named}"
    for name in ("docker", "docker-classic"):
        with pytest.raises(UsageError, match=named):
            choose_builder(name, asked)


def test_one_platform_is_for_every_builder() -> None:
    assert only_oci(outputs=(), base=None, compression=None, is_lazy=False, platform="linux/arm64") == ()
