"""The configuration is the one that a Dockerfile's instructions would leave.

Expected values: Dockerfile reference, "Environment replacement", "ENTRYPOINT" (which resets CMD), "WORKDIR", "LABEL".
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lj_image.builders.oci.configuration import configured, expanded
from lj_image.catalog.release import RunConfig
from lj_image.oci.descriptor import Platform
from lj_image.oci.image_config import ImageConfig

AT = "2025-02-28T00:00:00Z"
BASE = (
    ImageConfig.empty(Platform("linux", "amd64"))
    .with_env({"PATH": "/usr/bin:/bin", "KEPT": "1"})
    .with_labels({"of": "base", "kept": "yes"})
    .with_entrypoint(["/start"])
    .with_cmd(["bash"])
    .with_workdir("/root")
)


def made(run: RunConfig, *own: tuple[str, str], **labels: str) -> ImageConfig:
    plan: Any = SimpleNamespace(release=SimpleNamespace(config=run), env=(*run.env, *own))
    return configured(BASE, plan, labels, AT)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$foo", "bar"),
        ("${foo}_baz", "bar_baz"),
        ("$foo_baz", ""),
        ("/$foo/${foo}", "/bar/bar"),
        ("\\$foo", "$foo"),
        ("\\${foo}", "${foo}"),
        ("${foo:-word}", "bar"),
        ("${absent:-word}", "word"),
        ("${empty:-word}", "word"),
        ("${foo:+word}", "word"),
        ("${absent:+word}", ""),
        ("${absent:-${foo}}", "bar"),
        ("${foo:+:${foo}}", ":bar"),
        ("100 $", "100 $"),
        ("a=b c", "a=b c"),
    ],
)
def test_variables_are_replaced_as_env_replaces_them(written: str, expected: str) -> None:
    assert expanded(written, {"foo": "bar", "empty": ""}) == expected


def test_variables_of_the_base_are_known_and_those_of_one_instruction_are_not_yet() -> None:
    found = made(RunConfig(env=(("PATH", "/opt/bin:${PATH}"), ("OTHER", "$PATH"))), ("LATER", "$OTHER")).env
    assert found == {
        "PATH": "/opt/bin:/usr/bin:/bin",
        "KEPT": "1",
        "OTHER": "/usr/bin:/bin",
        "LATER": "/usr/bin:/bin",
    }


def test_an_entrypoint_drops_the_bases_command_and_a_command_keeps_the_entrypoint() -> None:
    both = made(RunConfig(entrypoint=("/run",), cmd=("x",)))
    assert (both.entrypoint, both.cmd) == (("/run",), ("x",))
    alone = made(RunConfig(entrypoint=("/run",)))
    assert (alone.entrypoint, alone.cmd) == (("/run",), None)
    command = made(RunConfig(cmd=("x",)))
    assert (command.entrypoint, command.cmd) == (("/start",), ("x",))
    assert made(RunConfig()).cmd == ("bash",)


def test_what_the_release_leaves_open_is_the_bases() -> None:
    found = made(RunConfig(), of="us")
    assert (found.workdir, found.env, found.created) == ("/root", BASE.env, AT)
    assert found.labels == {"of": "us", "kept": "yes"}
    assert made(RunConfig(workdir="/work space")).workdir == "/work space"
