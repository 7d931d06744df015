"""A project whose image is nothing but random files, assembled without an engine: something to send to registries."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.project import RELEASE, REPOSITORY, TAG, archives_of, fill, host_of, locks_of, write_project

from standins.commands import Project

__all__ = ["RELEASE", "REPOSITORY", "TAG", "bulky_project", "change", "point_to"]


def bulky_project(folder: Path, layer_mib: Sequence[int], regions: Sequence[str]) -> Project:
    """Write a project with a layer of each size, lock it and assemble it."""
    base = write_project(folder, layer_mib, regions)
    (folder / "home").mkdir()
    nowhere = {"LJ_IMAGE_STATE": str(folder / "state"), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    project = Project(folder, env=nowhere)
    point_to(project, {})
    assert base == folder / "base.tar"
    build(project)
    return project


def change(project: Project, number: int, seed: int) -> None:
    """Give one component other files, and assemble the release anew."""
    fill(project.folder, number, 1, seed)
    shutil.rmtree(locks_of(project.folder))
    build(project)


def build(project: Project) -> None:
    """Lock and assemble."""
    project.run("lock", RELEASE)
    project.run("build", RELEASE, "--builder", "oci", "--base", str(project.folder / "base.tar"))


def point_to(project: Project, places: Mapping[str, str]) -> None:
    """Let regions be places such as `localhost:5000/north`."""
    rewrite = {host_of(region): place for region, place in places.items()}
    archives = {"parts": {"url": archives_of(project.folder).as_uri()}}
    project.configure({"archives": archives, "endpoints": {"rewrite": rewrite}})
