"""The peers' Dockerfiles are what the README says, in their best form."""

from __future__ import annotations

from bench.dockerfiles import pip_dockerfile, priming_dockerfile, uv_dockerfile, uv_layered_dockerfile
from bench.peers import layers_in, room_for, without_hashes

LAYERS = ("torch.torch", "shared")


def _steps(text: str) -> list[str]:
    lines = text.splitlines()
    assert lines[:2] == ["FROM base:1", "ARG ROUND=0"]
    assert all(line.startswith("RUN ") for line in lines[2:])
    return lines[2:]


def test_pip_installs_all_mounted_wheels_in_one_step_and_compiles_nothing() -> None:
    [step] = _steps(pip_dockerfile("base:1", LAYERS))
    assert "--mount=type=bind,source=wheels,target=/wheels " in step
    for option in ("--no-index", "--no-deps", "--no-compile", "--no-cache-dir"):
        assert f" {option} " in step
    assert step.count(" -r /wheels/") == 2


def test_uv_copies_from_its_cache_mount_in_one_step() -> None:
    [step] = _steps(uv_dockerfile("base:1", LAYERS))
    assert "--mount=type=cache,target=/root/.cache " in step
    assert "uv pip install --offline --no-index --no-deps --no-compile-bytecode --system" in step
    assert "--link-mode=copy" in step


def test_uv_by_layers_has_a_step_for_each_that_sees_no_other_layers_wheels() -> None:
    steps = _steps(uv_layered_dockerfile("base:1", LAYERS))
    assert len(steps) == 2
    for layer, step in zip(LAYERS, steps, strict=True):
        assert f"--mount=type=bind,source=wheels/{layer},target=/wheels/{layer} " in step
        assert step.count("source=wheels") == step.count(" -r ") == 1


def test_priming_fills_the_cache_that_the_others_mount_and_leaves_no_files() -> None:
    [step] = _steps(priming_dockerfile("base:1", LAYERS))
    assert "--mount=type=cache,target=/root/.cache " in step
    assert "--target /root/.cache/primed" in step
    assert step.endswith("&& rm -rf /root/.cache/primed")


def test_layers_come_in_the_rendered_order_and_hashes_go() -> None:
    rendered = "RUN --mount=type=bind,source=layers/b.b,target=/t x\nRUN --mount=type=bind,source=layers/a,target=/t"
    assert layers_in(rendered) == ("b.b", "a")
    assert without_hashes("# wheels\na==1 --hash=sha256:00\nb==2 \\\n    --hash=sha256:01\n") == "a==1\nb==2\n"


def test_containerds_store_needs_room_for_an_image_three_times() -> None:
    assert room_for("containerd", 4, 7) - room_for("classic", 4, 7) == 7 + 4
