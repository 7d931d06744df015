"""A project whose image is nothing but random files, assembled without an engine: something to send to registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.project import RELEASE, REPOSITORY, TAG, host_of, write_project

from standins.commands import Project

__all__ = ["RELEASE", "REPOSITORY", "TAG", "bulky_project", "point_to"]


def bulky_project(folder: Path, layer_mib: Sequence[int], regions: Sequence[str]) -> Project:
    """Write a project with a layer of each size, lock it and assemble it."""
    base = write_project(folder, layer_mib, regions)
    (folder / "home").mkdir()
    nowhere = {"LJ_IMAGE_STATE": str(folder / "state"), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    project = Project(folder, env=nowhere)
    project.configure({})
    project.run("lock", RELEASE)
    project.run("build", RELEASE, "--builder", "oci", "--base", str(base))
    return project


def point_to(project: Project, places: Mapping[str, str]) -> None:
    """Let regions be places such as `localhost:5000/north`."""
    project.configure({"endpoints": {"rewrite": {host_of(region): place for region, place in places.items()}}})
