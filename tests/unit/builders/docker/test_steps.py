from __future__ import annotations

import pytest

from lj_image.builders.docker.steps import DockerfileSteps

SINGLE = """\
# syntax-free
ARG BASE=x
FROM base:1

ENV A=1
# layer: rootfs
COPY rootfs/ /
# A remark.
# layer: shared wheels
# component: transformers, ray
RUN --mount=type=bind,source=w,target=/w \\
    # inside
    install /w/* && \\

    check
WORKDIR /workspace
# layer: vllm
RUN <<EOF
COPY nothing
echo done
EOF
LABEL a=b
# layer: last
add x /
"""

STAGES = """\
FROM base:1 AS Wheels
# layer: wheels
COPY w /w
FROM base:1
# layer: numpy
COPY --from=wheels /w/numpy /w
# layer: torch
RUN install
FROM wheels AS final
# layer: result
COPY --from=1 / /
"""


@pytest.mark.parametrize(
    ("name", "line", "layer"),
    [
        ("[1/6] FROM docker.io/library/base:1", 3, None),
        ("[2/6] COPY rootfs/ /", 7, "rootfs"),
        ("[3/6] RUN --mount=type=bind,source=w,target=/w install /w/*", 11, "shared wheels"),
        ("[4/6] WORKDIR /workspace", 16, None),
        ("[5/6] RUN <<EOF (COPY nothing...)", 18, "vllm"),
        ("[stage-0 6/6] ADD x /", 24, "last"),  # engines 23 to 26 name a single stage, too
        ("[ 6/ 6] ADD x /", None, None),  # no engine writes this
        ("[linux/arm64 2/6] COPY rootfs/ /", 7, "rootfs"),
        ("[linux/arm64 stage-0 2/6] COPY rootfs/ /", 7, "rootfs"),
        ("[internal] load build context", None, None),
        ("exporting to image", None, None),
        ("[auth] library/base:pull token for registry-1.docker.io", None, None),
    ],
)
def test_buildkit_names_lead_to_lines_and_layers(name: str, line: int | None, layer: str | None) -> None:
    found = DockerfileSteps(SINGLE).of_buildkit(name)
    assert (found and found.line, found and found.layer) == (line, layer)


def test_padded_numbers_of_long_dockerfiles_are_read() -> None:
    dockerfile = "FROM b\n" + "".join(f"# layer: l{n}\nRUN {n}\n" for n in range(2, 13))
    steps = DockerfileSteps(dockerfile)
    assert steps.of_buildkit("[ 2/12] RUN 2").layer == "l2"  # type: ignore[union-attr]
    assert steps.of_buildkit("[stage-0  9/12] RUN 9").layer == "l9"  # type: ignore[union-attr]
    assert steps.of_buildkit("[12/12] RUN 12").layer == "l12"  # type: ignore[union-attr]


def test_a_base_that_is_scratch_or_has_triggers_shifts_nothing() -> None:
    steps = DockerfileSteps("FROM scratch\n# layer: one\nCOPY a /\n# layer: two\nCOPY b /\n")
    assert steps.of_buildkit("[1/2] COPY a /").layer == "one"  # type: ignore[union-attr]
    assert steps.of_buildkit("[2/2] COPY b /").layer == "two"  # type: ignore[union-attr]
    assert steps.of_buildkit("[2/4] RUN trigger").line == 1  # type: ignore[union-attr]
    assert steps.of_buildkit("[4/4] COPY b /").layer == "two"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("[wheels 2/2] COPY w /w", "wheels"),
        ("[stage-1 2/3] COPY --from=wheels /w/numpy /w", "numpy"),
        ("[stage-1 3/3] RUN install", "torch"),
        ("[final 1/1] COPY --from=1 / /", "result"),
        ("[linux/amd64 stage-1 3/3] RUN install", "torch"),
        ("[other 1/1] RUN what", None),
    ],
)
def test_stages_are_told_apart(name: str, layer: str | None) -> None:
    found = DockerfileSteps(STAGES).of_buildkit(name)
    assert (found and found.layer) == layer


def test_components_belong_to_the_next_instruction_only() -> None:
    components = [instruction.components for instruction in DockerfileSteps(SINGLE).instructions]
    assert components == [(), (), (), (), ("transformers", "ray"), (), (), (), ()]


def test_the_classic_builder_counts_every_instruction() -> None:
    steps = DockerfileSteps(STAGES)
    layers = [steps.of_classic(f"Step {n}/8 : X") for n in range(1, 9)]
    assert [step and step.layer for step in layers] == [
        None,
        "wheels",
        None,
        "numpy",
        "torch",
        None,
        "result",
        None,
    ]
    assert DockerfileSteps(SINGLE).of_classic("Step 1/9 : ARG BASE=x").line == 2  # type: ignore[union-attr]
    assert steps.of_classic("Step one") is None


def test_a_line_belongs_to_the_instruction_above_it() -> None:
    steps = DockerfileSteps(SINGLE)
    assert steps.at_line(13).layer == "shared wheels"  # type: ignore[union-attr]
    assert steps.at_line(1) is None


def test_a_dockerfile_may_end_anywhere() -> None:
    assert [i.line for i in DockerfileSteps("FROM x\nRUN a \\\n").instructions] == [1, 2]
    assert [i.line for i in DockerfileSteps("FROM x\nRUN <<EOF\nnever").instructions] == [1, 2]
    assert DockerfileSteps("").instructions == ()
