"""A real part of 25.02 through our builder and through the docker command: same context, same engine, in turn."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.docker_command import build_command
from bench.measure import Figure, run

PROGRAM = str(Path(sys.executable).with_name("lj-image"))
COMPONENTS = "transformers,accelerate,ray,vllm"
SELECTION = ["25.02", "--variant", "open", "--only", COMPONENTS]
TAG = "training-nv-pytorch:25.02-open-partial"
PEER_TAG = "lj-image-bench:peer"
COLD_RUNS, CACHED_RUNS = 4, 9
MEMORY_MIB = 200
CHECK_SECONDS = 3.0


def figures() -> Iterator[Figure]:
    """Yield the figures of building and verifying; a peer that is not installed is skipped by name."""
    try:
        yield from _figures()
    finally:
        _remove_replaced_images()


def _figures() -> Iterator[Figure]:
    run([PROGRAM, "build", *SELECTION])
    peer = build_command()
    if peer is None:
        print("skipped: build_cold, build_cached (no docker command with BuildKit here)", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield from _against_docker(peer, Path(folder))
    yield _memory()
    yield _verify_100()


def _remove_replaced_images() -> None:
    """Remove what each build left nameless by taking its tag; gigabytes each."""
    from lj_image.builders.docker import engine

    api = engine.connect()
    for image in api.images(filters={"dangling": True, "label": [f"io.lj-image.partial={COMPONENTS}"]}):
        api.remove_image(image["Id"], force=True)


def _memory() -> Figure:
    peak_mib = run([PROGRAM, "build", *SELECTION, "--no-cache"]).peak_mib
    sides = {"ours": peak_mib, "mark": MEMORY_MIB}
    return Figure("memory_build_mib", peak_mib / MEMORY_MIB, sides, 1.0, "peak of `build --no-cache`, against 200 MiB")


def _against_docker(peer: Sequence[str], folder: Path) -> Iterator[Figure]:
    run([PROGRAM, "render", *SELECTION, "-o", str(folder)])
    docker = [*peer, "--network", "none", "--tag", PEER_TAG, *_build_arguments(), str(folder)]
    environment = {"DOCKER_BUILDKIT": "1"}
    try:
        run(docker, environment)
        yield _cold(docker, environment)
        yield from _cached(docker, environment)
    finally:
        subprocess.run(["docker", "image", "rm", PEER_TAG], capture_output=True, check=False)


def _cold(docker: Sequence[str], environment: Mapping[str, str]) -> Figure:
    """Every step run again, files already known to the engine: what a changed release costs."""
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    sides = {"ours": ([PROGRAM, "build", *SELECTION], {}), "peer": (docker, environment)}
    for number in range(COLD_RUNS):
        # In turn first: whoever is second builds while the disk still writes the other's layers.
        for side in sorted(sides, reverse=number % 2 == 1):
            command, extra = sides[side]
            times[side].append(run([*command, "--no-cache"], extra).seconds)
    medians = {side: statistics.median(values) for side, values in times.items()}
    note = f"whole commands, --no-cache, {COMPONENTS}; against docker build of the same context"
    return Figure("build_cold", medians["ours"] / medians["peer"], medians, 1.05, note, times)


def _cached(docker: Sequence[str], environment: Mapping[str, str]) -> Iterator[Figure]:
    """Nothing changed: the builder asked again, in a warm process; and the whole command, which asks no builder."""
    builder = _WarmBuilder()
    times: dict[str, list[float]] = {"ours": [], "peer": [], "command": []}
    builder.build()
    for _ in range(CACHED_RUNS):
        times["ours"].append(builder.build())
        times["peer"].append(run(docker, environment).seconds)
        times["command"].append(run([PROGRAM, "build", *SELECTION]).seconds)
    sides = {side: statistics.median(values) for side, values in times.items()}
    builder_sides = {"ours": sides["ours"], "peer": sides["peer"]}
    command_sides = {"ours": sides["command"], "peer": sides["peer"]}
    yield Figure(
        "build_cached",
        sides["ours"] / sides["peer"],
        builder_sides,
        1.0,
        "all steps cached: our builder in a warm process against docker build, its own start included",
        {"ours": times["ours"], "peer": times["peer"]},
    )
    yield Figure(
        "build_up_to_date_command",
        sides["command"] / sides["peer"],
        command_sides,
        None,
        "whole commands: `lj-image build`, up to date, with Python's start; no mark",
        {"ours": times["command"], "peer": times["peer"]},
    )


class _WarmBuilder:
    """Our builder with everything imported and prepared, as a pipeline that builds many images has it."""

    def __init__(self) -> None:
        from lj_image.builders.docker import engine
        from lj_image.catalog.catalog import find_catalog
        from lj_image.catalog.resolve import resolve
        from lj_image.cli.app import App
        from lj_image.cli.workshop import workshop
        from lj_image.config import load_config
        from lj_image.release.build import prepare

        app = App()
        config, catalog = load_config(), find_catalog(Path.cwd())
        release = resolve(catalog, config, "25.02", variant="open")
        self.api = engine.connect()
        plan = app.plan(release, COMPONENTS.split(","))
        self.prepared = prepare(plan, "mounts", workshop(app, release, self.api))

    def build(self) -> float:
        """Build once, return the seconds."""
        from lj_image.builders.docker import buildkit
        from lj_image.builders.docker.request import BuildRequest
        from lj_image.builders.docker.view import PlainView

        labels = self.api.inspect_image(TAG)["Config"]["Labels"]  # type: ignore[no-untyped-call]
        request = BuildRequest(
            context=self.prepared.context, tags=(TAG,), build_args=_arguments_from(labels), network="none"
        )
        with Path(os.devnull).open("w") as nowhere:
            started = time.perf_counter()
            buildkit.build(self.api, request, PlainView(nowhere))
            return time.perf_counter() - started


def _arguments_from(labels: Mapping[str, str]) -> dict[str, str]:
    return {
        "REVISION": labels["org.opencontainers.image.revision"],
        "CREATED": labels["org.opencontainers.image.created"],
        "BASE_DIGEST": labels["org.opencontainers.image.base.digest"],
        "INPUTS": labels["io.lj-image.inputs"],
    }


def _build_arguments() -> list[str]:
    """Return the same build arguments that our image was made with, so that both do the same work."""
    from lj_image.builders.docker import engine

    labels = engine.connect().inspect_image(TAG)["Config"]["Labels"]  # type: ignore[no-untyped-call]
    return [item for name, value in _arguments_from(labels).items() for item in ("--build-arg", f"{name}={value}")]


def _verify_100() -> Figure:
    """All checks of the part but imports, whose time is the imported package's; layers scanned once before."""
    from dataclasses import replace

    from lj_image.builders.docker import engine
    from lj_image.catalog.catalog import find_catalog
    from lj_image.catalog.release import PipSource
    from lj_image.catalog.resolve import resolve
    from lj_image.cli.app import App
    from lj_image.cli.workshop import workshop
    from lj_image.config import load_config
    from lj_image.release.proof import subject_of
    from lj_image.verify.runner import verify

    app, config, api = App(), load_config(), engine.connect()
    release = resolve(find_catalog(Path.cwd()), config, "25.02", variant="open")
    components = tuple(
        replace(item, source=replace(item.source, imports=None)) if isinstance(item.source, PipSource) else item
        for item in release.components
    )
    plan = app.plan(replace(release, components=components), COMPONENTS.split(","))
    subject = subject_of(plan, TAG, workshop(app, release, api))
    verify(subject, api=api, cache_dir=config.cache_dir, junit=None, progress=lambda _: None)  # layers are known now
    steps: list[tuple[str, float]] = []
    report = verify(
        subject,
        api=api,
        cache_dir=config.cache_dir,
        junit=None,
        progress=lambda words: steps.append((words, time.perf_counter())),
    )
    since_start = time.perf_counter() - next(at for words, at in steps if words.startswith("asking"))
    per_100 = since_start * 100 / len(report.checks)
    note = f"{len(report.checks)} checks after container start, per 100, against 3 s"
    return Figure("verify_100", per_100 / CHECK_SECONDS, {"ours": per_100, "mark": CHECK_SECONDS}, 1.0, note)
