"""Who asks, with what compiler, kept where, and what is patched."""

from __future__ import annotations

import functools
import json
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from ljperf.compiling import engine, notice, trainer, wish
from ljperf.compiling.backends import usable_backend
from ljperf.compiling.cache import keep_cache
from ljperf.compiling.notice import reason_of
from ljperf.compiling.recomputation import FrozenInputError, let_inputs_have_gradients, make_reentrant
from torch import nn
from torch.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("LJ_COMPILE", "LJ_COMPILE_BACKEND", "RANK", "ACCELERATE_DYNAMO_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(wish, "dynamo_plugin", lambda: None)
    notice._said.clear()


# Compilers.


@pytest.mark.parametrize(
    ("device", "tools", "triton", "headers", "name", "why"),
    [
        ("cpu", {"g++"}, False, True, "inductor", None),
        ("cpu", {"clang++"}, False, True, "inductor", None),
        ("cpu", set(), True, True, "aot_eager", "C++ compiler"),
        ("cuda", {"gcc"}, True, True, "inductor", None),
        ("cuda", {"gcc"}, False, True, "aot_eager", "Triton"),
        ("cuda", {"g++"}, True, True, "aot_eager", "C compiler"),
        ("cuda", {"gcc"}, True, False, "aot_eager", "python3-dev"),
        ("cpu", {"g++"}, True, False, "aot_eager", "python3-dev"),
    ],
)
def test_inductor_is_used_only_with_the_compilers_it_calls(
    device: str, tools: set[str], triton: bool, headers: bool, name: str, why: str | None
) -> None:
    found = usable_backend(
        "inductor",
        device,
        environ={},
        which=lambda tool: tool if tool in tools else None,
        installed=lambda module: triton and module == "triton",
        has_headers=lambda: headers,
    )
    assert found.name == name
    assert (found.why_not is None) if why is None else (why in (found.why_not or ""))


def test_compiler_that_the_environment_names_is_the_one_that_counts() -> None:
    def which(tool: str) -> str | None:
        return tool if tool == "g++" else None

    assert usable_backend("inductor", "cpu", environ={"CXX": "icpx -O2"}, which=which).name == "aot_eager"
    assert (
        usable_backend("inductor", "cpu", environ={"CXX": "g++ -O2"}, which=which, has_headers=lambda: True).name
        == "inductor"
    )


def test_other_backends_need_no_compiler() -> None:
    assert usable_backend("eager", "cuda", environ={}, which=lambda _: None).name == "eager"


# The cache.


def test_cache_is_in_the_users_cache_folder(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = keep_cache(environ)
    assert folder is not None
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path / "ljperf")
    assert environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder)


@pytest.mark.parametrize("given", [{"TORCHINDUCTOR_CACHE_DIR": "/chosen", "HOME": "/nowhere"}, {}])
def test_cache_that_the_user_chose_or_that_has_no_home_stays(given: dict[str, str]) -> None:
    environ = dict(given)
    assert keep_cache(environ) is None
    assert environ == given


def test_cache_folder_that_cannot_be_made_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "ljperf").write_text("in the way")
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    assert keep_cache(environ) is None
    assert "TORCHINDUCTOR_CACHE_DIR" not in environ


# Who asks.


def test_nobody_asks_by_default() -> None:
    assert wish.wish_of({}) is None
    assert wish.wish_of({"LJ_COMPILE": "0"}) is None


def test_hand_loop_asks_by_its_environment() -> None:
    assert wish.wish_of({"LJ_COMPILE": "1"}) == wish.Wish("LJ_COMPILE", "inductor")


def test_accelerate_asks_by_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = SimpleNamespace(
        to_kwargs=lambda: {"backend": "inductor", "mode": "max-autotune", "fullgraph": False, "dynamic": False}
    )
    monkeypatch.setattr(wish, "dynamo_plugin", lambda: plugin)
    assert wish.wish_of({}) == wish.Wish("accelerate", "inductor", {"mode": "max-autotune"})


@pytest.mark.parametrize(
    ("config", "stage"),
    [
        ({"zero_optimization": {"stage": 3}}, 3),
        ({"zero_optimization": {}}, 0),
        ({"zero_optimization": True}, 1),
        ({}, 0),
        ({"zero_optimization": {"stage": "auto"}}, None),
        ("/no/such/file.json", 0),
    ],
)
def test_stage_is_read_from_the_config(config: Any, stage: int | None) -> None:
    assert wish.stage_of(config) == stage


def test_stage_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({"zero_optimization": {"stage": 3}, "compile": {"deepcompile": True}}))
    assert wish.stage_of(str(path)) == 3
    assert wish.uses_deepcompile(path)


# deepspeed.initialize.


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        block = functools.partial(nn.TransformerEncoderLayer, 8, 2, 16)
        self.layers = nn.ModuleList(block() for _ in range(2))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden


class Engine:
    def __init__(self, module: nn.Module) -> None:
        self.module, self.asked = module, []

    def compile(self, backend: str = "", compile_kwargs: Any = None) -> None:
        self.asked.append(backend)


def patched() -> ModuleType:
    def initialize(args: Any = None, model: Any = None, config: Any = None, config_params: Any = None) -> Any:
        return Engine(model), None, None, None

    module = ModuleType("deepspeed")
    module.initialize = initialize  # type: ignore[attr-defined]
    engine.patch(module)
    return module


def test_initialize_does_nothing_more_when_nobody_asks() -> None:
    running, *_ = patched().initialize(model=Blocks(), config={"zero_optimization": {"stage": 3}})
    assert running.asked == []
    assert not hasattr(running, "ljperf_compiled")


def test_blocks_are_compiled_before_stage_3_and_the_engine_has_nothing_left_to_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("LJ_COMPILE", "1")
    monkeypatch.setenv("LJ_COMPILE_BACKEND", "eager")
    running, *_ = patched().initialize(None, Blocks(), config_params={"zero_optimization": {"stage": 3}})
    assert running.ljperf_compiled.leaves == ("TransformerEncoderLayer",)
    running.compile(backend="inductor", compile_kwargs={})
    assert running.asked == []


@pytest.mark.parametrize("config", [{"zero_optimization": {"stage": 2}}, {}])
def test_whole_engine_is_compiled_at_lower_stages(monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]) -> None:
    monkeypatch.setenv("LJ_COMPILE", "1")
    monkeypatch.setenv("LJ_COMPILE_BACKEND", "eager")
    running, *_ = patched().initialize(model=Blocks(), config=config)
    assert running.asked == ["eager"]


def test_deepcompile_is_left_to_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LJ_COMPILE", "1")
    config = {"zero_optimization": {"stage": 3}, "compile": {"deepcompile": True}}
    monkeypatch.setenv("LJ_COMPILE_BACKEND", "eager")
    running, *_ = patched().initialize(model=Blocks(), config=config)
    assert running.asked == ["eager"]
    assert not hasattr(running, "ljperf_compiled")


def test_model_without_blocks_trains_uncompiled_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LJ_COMPILE", "1")
    running, *_ = patched().initialize(model=nn.Linear(2, 2), config={"zero_optimization": {"stage": 3}})
    assert running.asked == []
    assert caplog.messages == [
        "ljperf: the blocks are not compiled: Linear has no list of repeated blocks, so there is nothing to compile"
        " one by one"
    ]


def test_mode_with_cuda_graphs_is_replaced_under_stage_3(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = wish.Wish("accelerate", "inductor", {"mode": "reduce-overhead"})
    assert engine._options(asked) == {"mode": "default"}
    assert "CUDA graphs" in caplog.text


# Transformers' Trainer.


def test_trainer_without_a_compiler_compiles_without_kernels(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Trainer:
        def __init__(self, model: Any = None, args: Any = None) -> None:
            self.args = args

    module = ModuleType("transformers.trainer")
    module.Trainer = Trainer  # type: ignore[attr-defined]
    trainer.patch(module)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "inductor")
    arguments = SimpleNamespace(torch_compile=True, torch_compile_backend="inductor")
    assert module.Trainer(None, args=arguments).args is arguments
    assert arguments.torch_compile_backend == "aot_eager"
    import os

    assert os.environ["ACCELERATE_DYNAMO_BACKEND"] == "aot_eager"
    assert len(caplog.messages) == 1
    untouched = SimpleNamespace(torch_compile=False, torch_compile_backend=None)
    module.Trainer(args=untouched)
    assert untouched.torch_compile_backend is None


# Around the blocks.


def checkpointing(**keywords: Any) -> nn.Module:
    module = nn.Linear(2, 2)
    module._gradient_checkpointing_func = functools.partial(checkpoint, **keywords)
    return module


def test_non_reentrant_checkpointing_becomes_reentrant_without_the_keywords_of_the_other_form() -> None:
    module = checkpointing(use_reentrant=False, determinism_check="none", preserve_rng_state=False)
    assert make_reentrant(module) == 1
    assert module._gradient_checkpointing_func.keywords == {"use_reentrant": True, "preserve_rng_state": False}
    assert make_reentrant(module) == 0


def test_frozen_embeddings_let_their_output_have_a_gradient() -> None:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.adapter = nn.Embedding(4, 2), nn.Linear(2, 2)
            self.embed.requires_grad_(False)

        def get_input_embeddings(self) -> nn.Module:
            return self.embed

    model = Adapted()
    let_inputs_have_gradients(model)
    assert model.embed(torch.zeros(1, dtype=torch.long)).requires_grad


def test_frozen_model_whose_embedding_cannot_be_found_is_not_compiled() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    with pytest.raises(FrozenInputError):
        let_inputs_have_gradients(model)


def test_reason_is_one_line_with_what_where_and_dynamos_detail() -> None:
    error = ValueError(
        "Attempted it\n  Explanation: long\n\n  Developer debug context: call f\n\nfrom user code:\n"
        '   File "/a/b/model.py", line 12, in forward\n    f()\n'
    )
    assert reason_of(error) == "ValueError: Attempted it: call f: model.py:12 in forward"
    assert len(reason_of(ValueError("x" * 900))) == 240


def test_same_line_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ljperf"):
        notice.say("one")
        notice.say("one")
    assert caplog.messages == ["ljperf: one"]
