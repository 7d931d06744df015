"""The generated tests, run on facts that are written down here: no engine, no image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_shell import LocalShell

from lj_image.catalog.release import RunConfig
from lj_image.errors import VerificationError
from lj_image.plan import ConstraintsLayer, Plan
from lj_image.verify import runner
from lj_image.verify.agent import Answer
from lj_image.verify.facts import (
    CONSTRAINTS,
    DISTRIBUTIONS,
    PIP_CHECK,
    Facts,
    ImageConfig,
    image_config,
    import_question,
    key_of,
    own_layers,
)
from lj_image.verify.layers import LayerScan
from lj_image.verify.plugin import VerifyPlugin, check_name
from lj_image.verify.report import Check
from lj_image.verify.subject import Subject
from unit.verify.verify_subjects import base_component, component, locked, make_plan, pip_source

PLAN = make_plan(
    base_component("python", "3.11", "python"),
    base_component("perf", "5", "none"),
    component("numpy", "1.26.4", pip_source("numpy", "1.26.4", imports="numpy")),
    distributions=(locked("numpy", "1.26.4", "numpy"),),
    protected=("torch", "deepspeed"),
    base_packages={"torch": "2.6"},
    config=RunConfig((("MODE", "fast"),), "/workspace", ("run",), ("it",)),
    size_budget_bytes=1000,
)
BASE = ImageConfig("sha256:b", "amd64", ("sha256:1",), {"PATH": "/bin"}, {}, (), ("sh",), "/", 100)
IMAGE = ImageConfig(
    "sha256:i",
    "amd64",
    ("sha256:1", "sha256:2"),
    {"PATH": "/bin", **dict(PLAN.env)},
    {"a": "b"},
    ("run",),
    ("it",),
    "/workspace",
    900,
)
SUBJECT = Subject(
    plan=PLAN, image_id="i", base_image_ref="base", labels={"a": "b"}, needles=(b"secret-word",), import_timeout_s=5
)


def test_compiled_files_are_no_litter_in_an_image_that_asks_for_them() -> None:
    asked = replace(PLAN, release=replace(PLAN.release, bytecode="unchecked-hash"))
    assert (SUBJECT.bytecode, replace(SUBJECT, plan=asked).bytecode) == (False, True)


def answers(plan: Plan) -> dict[str, Answer]:
    text = next(layer.text for layer in plan.layers if isinstance(layer, ConstraintsLayer))
    said: list[tuple[Mapping[str, Any], Any]] = [
        (DISTRIBUTIONS, [{"name": "NumPy", "version": "1.26.4", "location": "/site"}]),
        (PIP_CHECK, {"exit_code": 0, "stdout": "No broken requirements found.\n", "stderr": ""}),
        (CONSTRAINTS, text),
        (import_question(SUBJECT, "numpy"), {"imported": True, "message": ""}),
        ({"op": "python_version"}, "3.11.2"),
    ]
    return {key_of(question): Answer(value) for question, value in said}


TORCH = {"torch": {"/site/torch.py": "1"}, "deepspeed": None}
FACTS = Facts(
    image=IMAGE,
    base=BASE,
    history=("/bin/sh -c #(nop) CMD",),
    answers=answers(PLAN),
    protected_in_base=TORCH,
    protected=TORCH,
    scans=(LayerScan("sha256:2", ("opt/x",), (), 100),),
    litter={},
    gpu=False,
)


NOT_IMPORTED = Answer({"imported": False, "message": "x"})
COMPLAINED = Answer({"exit_code": 1, "stdout": "a 1 requires b, which is not installed.", "stderr": ""})


def run(facts: Facts, subject: Subject = SUBJECT) -> dict[str, Check]:
    plugin = VerifyPlugin(subject, facts, LocalShell())
    runner._run_tests(plugin, subject.tests)
    return {check.name: check for check in plugin.checks}


def failed(facts: Facts, subject: Subject = SUBJECT) -> dict[str, str | None]:
    return {name: check.found for name, check in run(facts, subject).items() if check.outcome == "failed"}


def with_answer(question: Mapping[str, Any], answer: Answer) -> Facts:
    return replace(FACTS, answers={**FACTS.answers, key_of(question): answer})


def with_image(**changes: Any) -> Facts:
    return replace(FACTS, image=replace(IMAGE, **changes))


def test_checks_have_the_names_that_a_person_reads() -> None:
    checks = run(FACTS)
    assert list(checks) == [
        "component[python]",
        "component[perf]",
        "component[numpy]",
        "imports[numpy]",
        "platform",
        "base",
        "env[MODE]",
        "env[PIP_CONSTRAINT]",
        "base_environment",
        "label[a]",
        "entrypoint",
        "cmd",
        "workdir",
        "distribution[numpy]",
        "complaints",
        "protected[torch]",
        "protected[deepspeed]",
        "constraints",
        "secrets[layers]",
        "secrets[history]",
        "secrets[configuration]",
        "litter",
        "size",
    ]
    assert {name: check.outcome for name, check in checks.items() if check.outcome != "passed"} == {
        "component[perf]": "not_probed",
        "protected[deepspeed]": "skipped",
    }
    assert (checks["component[python]"].component, checks["component[python]"].found) == ("python", "3.11.2")


@pytest.mark.parametrize(
    ("facts", "name", "found"),
    [
        (with_answer(DISTRIBUTIONS, Answer([])), "distribution[numpy]", None),
        (with_answer(import_question(SUBJECT, "numpy"), NOT_IMPORTED), "imports[numpy]", "an error"),
        (with_answer(PIP_CHECK, COMPLAINED), "complaints", "a 1 requires b, which is not installed."),
        (with_answer(PIP_CHECK, Answer({"exit_code": 2, "stdout": "", "stderr": "crashed"})), "complaints", "crashed"),
        (with_answer(CONSTRAINTS, Answer(None, "No such file")), "constraints", None),
        (replace(FACTS, protected={"torch": {"/site/torch.py": "2"}}), "protected[torch]", "1 changed"),
        (replace(FACTS, protected={"torch": {"/site/torch.py": "1", "/x": "2"}}), "protected[torch]", "1 changed"),
        (replace(FACTS, protected={"torch": None}), "protected[torch]", "it is not installed"),
        (with_image(architecture="arm64"), "platform", "arm64"),
        (with_image(layers=("sha256:9", "sha256:2")), "base", "other layers"),
        (with_image(environment={**IMAGE.environment, "MODE": "slow"}), "env[MODE]", "slow"),
        (with_image(environment={**IMAGE.environment, "PATH": "/x"}), "base_environment", "PATH=/x"),
        (with_image(labels={}), "label[a]", None),
        (with_image(entrypoint=()), "entrypoint", "none"),
        (with_image(cmd=("other",)), "cmd", "other"),
        (with_image(workdir="/"), "workdir", "/"),
        (with_image(size_bytes=2**30), "size", "1.00 GiB"),
        (replace(FACTS, history=("RUN echo", "ARG P=secret-word")), "secrets[history]", "a secret in step 2"),
        (with_image(labels={"a": "b", "c": "secret-word"}), "secrets[configuration]", "a secret in c"),
        (replace(FACTS, scans=(LayerScan("l", ("opt/x",), ("opt/x",), 1),)), "secrets[layers]", "a secret in opt/x"),
        (replace(FACTS, litter={"root/.netrc": "credentials"}), "litter", "root/.netrc (credentials)"),
    ],
)  # fmt: skip
def test_each_broken_promise_fails_its_own_check_only(facts: Facts, name: str, found: str | None) -> None:
    assert failed(facts) == ({name: found} if name != "distribution[numpy]" else {name: None, "component[numpy]": None})


def test_two_versions_in_one_place_are_a_failure() -> None:
    twice = [{"name": "numpy", "version": version, "location": "/site"} for version in ("1.26.4", "1.26.3")]
    assert failed(with_answer(DISTRIBUTIONS, Answer(twice))) == {"distribution[numpy]": "1.26.4 and 1.26.3"}


def test_an_image_without_pip_leaves_its_complaints_open() -> None:
    answer = Answer({"exit_code": 1, "stdout": "", "stderr": "/usr/bin/python3: No module named pip"})
    assert run(with_answer(PIP_CHECK, answer))["complaints"].outcome == "not_probed"


def test_without_a_base_nothing_is_compared_with_it() -> None:
    checks = run(replace(FACTS, base=None, protected_in_base={}))
    skipped = {name for name, check in checks.items() if check.outcome == "skipped"}
    assert skipped == {"base", "base_environment", "protected[torch]", "protected[deepspeed]"}


OWN = """
import pytest

def test_runs(host):
    assert host.check_output("echo hello") == "hello"

def test_fails(host):
    print("said by the test")
    assert host.run("exit 3").rc == 0

def test_skips():
    pytest.skip("not today")

@pytest.mark.gpu
def test_gpu():
    raise AssertionError("must not run")

@pytest.fixture
def broken():
    yield
    raise RuntimeError("broken at the end")

def test_teardown(broken):
    pass
"""


def test_the_images_own_tests_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_mine.py").write_text(OWN)
    (tmp_path / "test_typo.py").write_text("def broken(:\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    checks = run(FACTS, replace(SUBJECT, tests=tmp_path))
    own = {name: (check.outcome, check.message) for name, check in checks.items() if name.startswith("test_")}
    assert own["test_mine.py::test_runs"] == ("passed", "")
    assert own["test_mine.py::test_skips"] == ("skipped", "not today")
    assert own["test_mine.py::test_gpu"] == ("skipped", "the engine has no GPU")
    assert own["test_mine.py::test_fails"][0] == own["test_mine.py::test_teardown"][0] == "failed"
    assert "exit 3" in own["test_mine.py::test_fails"][1]
    assert "broken at the end" in own["test_mine.py::test_teardown"][1]
    assert own["test_typo.py"][0] == "failed"
    assert "SyntaxError" in own["test_typo.py"][1]
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "__pycache__").exists()


def test_the_users_pytest_settings_have_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --no-such-option")
    assert len(run(FACTS)) == 23


def test_ctrl_c_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_it():\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run(FACTS, replace(SUBJECT, tests=tmp_path))


def test_a_conftest_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import no_such_module\n")
    with pytest.raises(VerificationError, match="could not run") as failure:
        run(FACTS, replace(SUBJECT, tests=tmp_path))
    assert "no_such_module" in (failure.value.hint or "")


def test_names_of_checks() -> None:
    assert check_name("test_components.py::test_component[cudnn]") == "component[cudnn]"
    assert check_name("../../images/x/tests/test_own.py::test_it[a::b/c]") == "test_own.py::test_it[a::b/c]"


def test_an_engines_words_are_read_also_where_it_leaves_them_out() -> None:
    config = image_config({"Id": "sha256:1", "Config": {"Env": ["A=b=c"], "Cmd": None, "Labels": None}})
    assert (config.environment, config.cmd, config.labels, config.workdir) == ({"A": "b=c"}, (), {}, "/")
    assert image_config({"Id": "sha256:1"}).layers == ()


def test_layers_of_the_base_are_not_ours() -> None:
    assert own_layers(IMAGE, BASE) == ("sha256:2",)
    assert own_layers(IMAGE, None) == IMAGE.layers


def test_a_question_has_one_name_however_it_is_written() -> None:
    assert key_of({"a": 1, "op": "x"}) == key_of({"op": "x", "a": 1})
    assert json.loads(key_of({"op": "x"})) == {"op": "x"}
