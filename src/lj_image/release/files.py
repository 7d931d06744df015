"""The locked files of a plan, and the wheels of our own projects, are brought into the artifact store."""

from __future__ import annotations

from lj_image.catalog.project import OWN_INDEX, Project, read_project
from lj_image.catalog.release import PipSource
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.lock.progress import Progress
from lj_image.lock.store import ArtifactStore
from lj_image.plan import Plan


def fetch_missing(plan: Plan, config: Config, store: ArtifactStore, progress: Progress) -> None:
    """Load what is missing, and write the wheels of our own projects; the HTTP client is imported only if needed.

    Raises ArtifactError, and BuildError for a project that the image has not all requirements of.
    """
    _write_own(plan, store)
    files = [item for item in plan.locked() if getattr(item, "index", None) != OWN_INDEX]
    if store.missing(item.artifact for item in files):
        from lj_image.lock.fetch import fetch

        fetch(files, config, store, progress)


def _write_own(plan: Plan, store: ArtifactStore) -> None:
    for item in plan.installed():
        component = plan.release.component(item.component) if item.index == OWN_INDEX else None
        if component is None or not isinstance(component.source, PipSource) or component.source.project is None:
            continue
        project = read_project(component.source.project)
        _require_met(project, plan)
        if store.missing([item.artifact]):
            from lj_image.lock.own_wheel import wheel_of

            store.add([wheel_of(project)], item.artifact.file, "wheel")
            store.require(item.artifact)  # another one, when somebody edited the project just now


def _require_met(project: Project, plan: Plan) -> None:
    from lj_image.lock.own_wheel import unmet

    versions = {**plan.release.base.facts.packages, **{item.name: item.version for item in plan.installed()}}
    lacking = unmet(project, versions)
    if lacking:
        raise BuildError(
            f"{project.name} requires {', '.join(lacking)}, which {plan.tag} does not have",
            hint="let a component of the release bring it, and lock again; or let the project do without",
        )
