"""Build: lock, files, base, Dockerfile and engine come together, and the record is written.

The order is chosen so that what can fail cheaply fails first: lock and disk before downloads, downloads before the
engine is asked for anything long.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lj_image import __version__
from lj_image.builders.docker import engine
from lj_image.builders.docker.base import BaseImage, ensure_base
from lj_image.builders.docker.events import Observer
from lj_image.config import Config
from lj_image.context import BuildContext
from lj_image.dockerfile import Form, context, render
from lj_image.errors import BuildError, EngineError, UsageError
from lj_image.lock.lock import Artifact
from lj_image.lock.progress import Progress
from lj_image.lock.store import ArtifactStore
from lj_image.plan import AptLayer, Plan, RunLayer, plan_digest
from lj_image.release.builder_choice import BuilderName
from lj_image.release.files import fetch_missing
from lj_image.release.provenance import revision_and_time
from lj_image.release.record import Built, Record, Records
from lj_image.templating import Templates

if TYPE_CHECKING:
    import docker

Say = Callable[[str], None]

CA_BUNDLE: Final = "ca_bundle"
"""The id under which steps with a network mount the certificates of the config."""
UNPACKED_RATIO: Final = 1.95
"""Installed bytes for a compressed byte of wheel, measured on the CUDA stack of 25.02 (3.9 GB become 7.4 GiB)."""


@dataclass(frozen=True)
class Workshop:
    """What a build works with; nothing of the release itself."""

    api: docker.APIClient
    config: Config
    store: ArtifactStore
    records: Records
    templates: Templates
    say: Say
    progress: Progress


@dataclass(frozen=True, slots=True)
class Options:
    """How to build."""

    builder: BuilderName = "auto"
    no_cache: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan with everything that the engine needs to build it."""

    plan: Plan
    form: Form
    base: BaseImage
    context: BuildContext
    inputs: str
    """Digest over all that the image is made from."""

    @property
    def tag(self) -> str:
        """The local reference of the image."""
        return f"{self.plan.release.image}:{self.plan.tag}"


def build(plan: Plan, options: Options, workshop: Workshop, observe: Callable[[], Any]) -> tuple[Built, bool]:
    """Build the image of a plan; return what is recorded of it, and whether it was up to date.

    `observe` is a context manager that gives an observer of the engine's work. Two builds of one release wait for
    each other. Raises BuildError, EngineError, ArtifactError.
    """
    from filelock import FileLock, Timeout

    workshop.records.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(workshop.records.folder / f".{plan.release.key}.build.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        workshop.say(f"another build of {plan.release.key} is running; waiting for it")
        lock.acquire()
    try:
        return _build_alone(plan, options, workshop, observe)
    finally:
        lock.release()  # not `with lock`: that would take it a second time, and give back only one of the two


def _build_alone(plan: Plan, options: Options, workshop: Workshop, observe: Callable[[], Any]) -> tuple[Built, bool]:
    form = choose_form(workshop.api, options.builder, workshop.say)
    workshop.say(
        f"{plan.release.image} {plan.release.name}, variant {plan.release.variant} ({plan.release.variant_reason})"
    )
    prepared = prepare(plan, form, workshop)
    present = None if options.no_cache else _present(workshop.api, prepared)
    if present is not None:
        return _recorded(prepared, present, 0.0, workshop), True
    _require_space(workshop.api, plan)
    started = time.monotonic()
    with observe() as observer:
        image_id = _run(prepared, options, workshop, observer)
    seconds = time.monotonic() - started
    made = workshop.api.inspect_image(image_id)  # type: ignore[no-untyped-call]
    return _recorded(prepared, made, seconds, workshop), False


def choose_form(api: docker.APIClient, builder: BuilderName, say: Say) -> Form:
    """Take BuildKit where the engine has it, else its classic builder; says which and why."""
    if builder == "docker-classic":
        say("builder: docker-classic (asked for)")
        return "staged"
    if engine.supports_buildkit(api):
        say(f"builder: docker with BuildKit ({'asked for' if builder == 'docker' else 'an engine answers'})")
        return "mounts"
    say("builder: docker-classic (this engine has no BuildKit)")
    return "staged"


def prepare(plan: Plan, form: Form, workshop: Workshop) -> Prepared:
    """Fetch the files, make or pull the base, render; everything but the engine's build."""
    fetch_missing(plan, workshop.config, workshop.store, workshop.progress)
    base = ensure_base(workshop.api, plan.release.base, workshop.config, plan.release.platform, log=workshop.say)
    wheels = _built_wheels(plan, base, workshop)

    def file_of(artifact: Artifact) -> tuple[str, str, Path]:
        found = wheels.get(artifact.sha256, artifact)
        return found.file, found.sha256, workshop.store.path(found.sha256)

    text = render(plan, workshop.templates, form=form, base=base.reference)
    made = context(plan, text, file_of)
    return Prepared(plan, form, base, made, _inputs(plan, text, base, made))


def _built_wheels(plan: Plan, base: BaseImage, workshop: Workshop) -> Mapping[str, Artifact]:
    """Return sdist sha256 -> the wheel built from it."""
    sources = [item for item in plan.installed() if item.artifact.kind == "sdist"]
    if not sources:
        return {}
    from lj_image.builders.docker.wheels import build_wheel

    built: dict[str, Artifact] = {}
    for item in sources:
        env = plan.release.build_env(item.component)
        built[item.artifact.sha256] = build_wheel(
            workshop.api, base, item, workshop.store, workshop.config, env=env, say=workshop.say
        )
    return built


def _inputs(plan: Plan, dockerfile: str, base: BaseImage, made: BuildContext) -> str:
    requirements = [file.source for file in made.files if isinstance(file.source, bytes)]
    parts = (plan_digest(plan).encode(), dockerfile.encode(), base.image_id.encode(), *requirements)
    return "sha256:" + hashlib.sha256(b"\0".join(parts)).hexdigest()


def _present(api: docker.APIClient, prepared: Prepared) -> dict[str, Any] | None:
    """Return the image that the tag names, when it was made from these very inputs."""
    found = engine.find_image(api, prepared.tag)
    if found is None:
        return None
    labels = (found.get("Config") or {}).get("Labels") or {}
    return found if labels.get("io.lj-image.inputs") == prepared.inputs else None


def _require_space(api: docker.APIClient, plan: Plan) -> None:
    """Refuse a build that the engine's disk cannot hold; the context is kept there next to what is installed."""
    needed = int(plan.size_bytes() * (1 + UNPACKED_RATIO))
    free = engine.free_bytes(api)
    if free is not None and free < needed:
        raise EngineError(
            f"the build needs about {needed / 1e9:.1f} GB where the engine keeps images; {free / 1e9:.1f} GB are free",
            hint="free some space: docker builder prune, docker image prune",
        )


def _run(prepared: Prepared, options: Options, workshop: Workshop, observer: Observer) -> str:
    from lj_image.builders.docker import buildkit, classic  # late: an image that is up to date needs neither
    from lj_image.builders.docker.request import BuildRequest

    plan = prepared.plan
    revision, created = revision_and_time(plan.release.folder, plan.release.date)
    request = BuildRequest(
        context=prepared.context,
        tags=(prepared.tag,),
        secrets=build_secrets(plan, workshop.config),
        build_args={
            "REVISION": revision,
            "CREATED": created,
            "BASE_DIGEST": prepared.base.digest,
            "INPUTS": prepared.inputs,
        },
        network=workshop.config.values.build.network if _needs_network(plan) else "none",
        platform=str(plan.release.platform),
        no_cache=options.no_cache,
    )
    builder = buildkit.build if prepared.form == "mounts" else classic.build
    return builder(workshop.api, request, observer)


def _needs_network(plan: Plan) -> bool:
    """Say whether a step may ask for one: locked files install without."""
    return any(isinstance(layer, (AptLayer, RunLayer)) for layer in plan.layers)


def build_secrets(plan: Plan, config: Config) -> dict[str, bytes]:
    """Return the secrets that steps of this plan mount; raises ManifestError for one that the config does not have."""
    names = {name for layer in plan.layers if isinstance(layer, RunLayer) for name in layer.source.secrets}
    found: dict[str, bytes] = {}
    if config.values.build.ca_bundle is not None and _needs_network(plan):
        found[CA_BUNDLE] = Path(config.values.build.ca_bundle).expanduser().read_bytes()
    for name in sorted(names):
        if name not in config.values.secrets:
            raise UsageError(
                f"a step mounts the secret {name!r}, which the config does not have",
                hint=f"config.yaml: secrets: {{{name}: {{env: NAME}}}}",
            )
        found[name] = config.values.secrets[name].read(name)
    return found


def _recorded(prepared: Prepared, image: Mapping[str, Any], seconds: float, workshop: Workshop) -> Built:
    plan, release = prepared.plan, prepared.plan.release
    built = Built(
        image_id=str(image["Id"]),
        tag=prepared.tag,
        inputs=prepared.inputs,
        plan=plan_digest(plan),
        lock=plan.lock.digest,
        builder="docker" if prepared.form == "mounts" else "docker-classic",
        base=f"{prepared.base.reference}@{prepared.base.digest}",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        size_bytes=int(image["Size"]),
        partial=bool(plan.only),
        overridden=dict(release.overridden),
    )

    def change(record: Record | None) -> Record:
        record = record or Record(release.image, release.name, release.variant)
        if record.built is not None and record.built.image_id == built.image_id and seconds == 0.0:
            return replace(record, built=replace(record.built, at=built.at))
        return replace(record, built=built, tool=__version__)

    record = workshop.records.update(plan.key, change)
    if record.built is None:
        raise BuildError("the record was not written")
    return record.built
