"""Everything the tests compare, gathered at once: the engine is asked, the agent is asked, the layers are read."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docker import APIClient

from lj_image.catalog.release import Component, PipSource
from lj_image.plan import CONSTRAINTS_PATH
from lj_image.verify.agent import Answer, Question, ask
from lj_image.verify.container import RunningContainer, running
from lj_image.verify.engine import engine_errors, inspect_image
from lj_image.verify.layers import LayerScan, Needles, scan_image
from lj_image.verify.litter import candidates, littered
from lj_image.verify.probes import Context, Finding, probe_of
from lj_image.verify.subject import Subject
from lj_image.whole import write_whole

Progress = Callable[[str], None]
Recorded = Mapping[str, Mapping[str, str] | None]
"""Distribution -> path -> digest; None for one that is not installed."""

DISTRIBUTIONS: Final[Question] = {"op": "distributions"}
PIP_CHECK: Final[Question] = {"op": "pip_check"}
CONSTRAINTS: Final[Question] = {"op": "read_text", "path": CONSTRAINTS_PATH}


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an engine says of an image."""

    id: str
    architecture: str
    layers: tuple[str, ...]
    """Diff ids, lowest first."""
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    workdir: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What is really in the image."""

    image: ImageConfig
    base: ImageConfig | None
    history: tuple[str, ...]
    """How each layer was made, as the image says it."""
    answers: Mapping[str, Answer]
    """By question, see `key_of`."""
    protected_in_base: Recorded
    protected: Recorded
    scans: tuple[LayerScan, ...]
    litter: Mapping[str, str]
    gpu: bool

    def answer(self, question: Question) -> Answer:
        """Return the answer to a question that was put."""
        return self.answers[key_of(question)]

    def finding(self, subject: Subject, component: Component) -> Finding:
        """Return what a component's probe makes of the answers."""
        context = context_of(subject, component, self.image)
        probe = probe_of(component)
        asked = probe.ask(component, context)
        return probe.read(component, context, {name: self.answer(question) for name, question in asked.items()})


def key_of(question: Question) -> str:
    """Return a question's name: equal questions of several components are put once."""
    return json.dumps(dict(question), sort_keys=True)


def context_of(subject: Subject, component: Component, image: ImageConfig) -> Context:
    """Return what a probe may know besides its component."""
    return Context(image.environment, subject.archives.get(component.id))


def import_question(subject: Subject, module: str) -> Question:
    """Return the question whether a module can be imported."""
    return {"op": "imports", "module": module, "timeout_s": subject.import_timeout_s}


def imports_of(subject: Subject) -> tuple[tuple[Component, str], ...]:
    """Return each component with the module that must be importable."""
    return tuple(
        (component, component.source.imports)
        for component in subject.plan.components()
        if isinstance(component.source, PipSource) and component.source.imports
    )


@contextmanager
def gathered(
    subject: Subject, api: APIClient, cache_dir: Path, progress: Progress
) -> Iterator[tuple[Facts, RunningContainer]]:
    """Gather all facts; the container that gave them stays until the end, for the image's own tests."""
    image = image_config(inspect_image(api, subject.image_id, hint="build it first: lj-image build"))
    base = _base_config(subject, api)
    needles = Needles(subject.needles)
    with _scanning(api, image, base, needles, cache_dir) as scans:
        in_base = _protected_in_base(subject, api, base, cache_dir, progress)
        progress("starting a container")
        with running(api, image.id, gpu=True) as container:
            progress("asking what is inside")
            answers = ask(container, _questions(subject, image, in_base))
            progress("reading the layers")
            found = scans.result()
            paths = (path for scan in found for path in scan.paths)
            litter = littered(candidates(paths, bytecode=subject.bytecode), lambda names: _owned(container, names))
            protected = answers[key_of(_recorded(in_base))].value if in_base else {}
            history = _history(api, image.id)
            yield Facts(image, base, history, answers, in_base, protected, found, litter, container.gpu), container


def image_config(inspected: Mapping[str, Any]) -> ImageConfig:
    """Read what the engine says of an image."""
    config = inspected.get("Config") or {}
    pairs = (entry.partition("=") for entry in config.get("Env") or ())
    return ImageConfig(
        id=inspected["Id"],
        architecture=inspected.get("Architecture", ""),
        layers=tuple((inspected.get("RootFS") or {}).get("Layers") or ()),
        environment={name: value for name, _, value in pairs},
        labels=dict(config.get("Labels") or {}),
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        workdir=config.get("WorkingDir") or "/",
        size_bytes=int(inspected.get("Size") or 0),
    )


def _base_config(subject: Subject, api: APIClient) -> ImageConfig | None:
    if subject.base_image_ref is None:
        return None
    return image_config(
        inspect_image(api, subject.base_image_ref, hint="the base is compared with the image: pull it first")
    )


def own_layers(image: ImageConfig, base: ImageConfig | None) -> tuple[str, ...]:
    """Return the layers that are not the base's."""
    below = frozenset(base.layers if base else ())
    return tuple(layer for layer in image.layers if layer not in below)


@contextmanager
def _scanning(
    api: APIClient, image: ImageConfig, base: ImageConfig | None, needles: Needles, cache_dir: Path
) -> Iterator[Future[tuple[LayerScan, ...]]]:
    """Read the layers in a thread, while the container is asked.

    Nobody waits for it after an error or Ctrl-C: an engine may be silent for minutes before a layer's first byte.
    """
    given_up = threading.Event()
    scan: Future[tuple[LayerScan, ...]] = Future()

    def work() -> None:
        below = base.layers if base else ()
        ours = own_layers(image, base)
        try:
            scan.set_result(scan_image(api, image.id, ours, needles, cache_dir, base=below, cancelled=given_up.is_set))
        except BaseException as error:  # it is raised where the result is awaited
            scan.set_exception(error)

    threading.Thread(target=work, name="layers", daemon=True).start()
    try:
        yield scan
    finally:
        given_up.set()


def _questions(subject: Subject, image: ImageConfig, in_base: Recorded) -> dict[str, Question]:
    """Return all questions, those that take longest first."""
    asked: list[Question] = [import_question(subject, module) for _, module in imports_of(subject)]
    asked += [PIP_CHECK, DISTRIBUTIONS, CONSTRAINTS]
    if in_base:
        asked.append(_recorded(in_base))
    for component in subject.plan.components():
        asked += probe_of(component).ask(component, context_of(subject, component, image)).values()
    return {key_of(question): question for question in asked}


def _recorded(names: Iterable[str]) -> Question:
    return {"op": "recorded", "names": sorted(names)}


def _owned(container: RunningContainer, paths: list[str]) -> list[str]:
    answer = ask(container, {"owned": {"op": "owned", "paths": [f"/{path}" for path in paths]}})["owned"]
    return [path.removeprefix("/") for path in answer.value or ()]


def _protected_in_base(
    subject: Subject, api: APIClient, base: ImageConfig | None, cache_dir: Path, progress: Progress
) -> Recorded:
    """Return the protected distributions of the base with their files, from an earlier run if there was one."""
    names = sorted(subject.plan.release.protected)
    if base is None or not names:
        return {}
    digest = hashlib.sha256("\n".join((base.id, *names)).encode()).hexdigest()[:32]
    memory = cache_dir / "scans" / f"base-{digest}.json"
    with suppress(OSError, ValueError):
        kept: Recorded = json.loads(memory.read_text(encoding="utf-8"))
        return kept
    progress("reading the base's protected packages")
    with running(api, base.id) as container:
        found: Recorded = ask(container, {"base": _recorded(names)})["base"].value or {}
    write_whole(memory, json.dumps(found))
    return found


def _history(api: APIClient, image_id: str) -> tuple[str, ...]:
    with engine_errors("reading the image's history"):
        steps = api.history(image_id)  # type: ignore[no-untyped-call]
    return tuple(f"{step.get('CreatedBy') or ''} {step.get('Comment') or ''}".strip() for step in steps)
