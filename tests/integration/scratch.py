"""What integration tests share besides fixtures: the base's recipe, and names for what they leave behind."""

from __future__ import annotations

from dataclasses import dataclass

import docker
from docker.errors import APIError

from lj_image.catalog.release import BootstrapRecipe

BASE_RECIPE = BootstrapRecipe(
    name="base-os",
    suite="bookworm",
    architecture="amd64",
    include=("python3", "python3-pip", "ca-certificates"),
    source_date_epoch=1735689600,
    env=(("PIP_BREAK_SYSTEM_PACKAGES", "1"),),
)
"""The one that `lj-image init` writes, and all that these tests need."""


@dataclass(frozen=True)
class Scratch:
    """Names for what a test run leaves in an engine; all of it is removed at the end of the run."""

    engine: docker.APIClient
    prefix: str

    def name(self, image: str) -> str:
        """Return a repository name for an image of this run."""
        return f"{self.prefix}/{image}"

    @property
    def labels(self) -> dict[str, str]:
        """Return labels for containers and nameless images of this run."""
        return {"lj-image.test": self.prefix}

    def printed(self, image: str, command: list[str]) -> str:
        """Run a command in a container without a network, and return what it prints; it has to succeed."""
        host = self.engine.create_host_config(network_mode="none")
        container = self.engine.create_container(image, command, labels=self.labels, host_config=host)["Id"]
        try:
            self.engine.start(container)
            status, said = self.engine.wait(container)["StatusCode"], self.engine.logs(container).decode()
        finally:
            self.engine.remove_container(container, force=True, v=True)
        assert status == 0, said
        return str(said)

    def sweep(self) -> None:
        """Remove the containers and images of this run, and containers that anyone started from those images."""
        images = self.engine.images(filters={"reference": f"{self.prefix}/*"})
        images += self.engine.images(filters={"label": f"lj-image.test={self.prefix}"})
        ancestors = [f"label=lj-image.test={self.prefix}", *(f"ancestor={image['Id']}" for image in images)]
        for key, _, value in (ancestor.partition("=") for ancestor in ancestors):
            for container in self.engine.containers(all=True, filters={key: value}):
                self.engine.remove_container(container["Id"], force=True, v=True)
        for image in images:
            for name in image["RepoTags"] or [image["Id"]]:
                if name.startswith((self.prefix, "sha256:")):
                    _remove_image(self.engine, name)


def _remove_image(engine: docker.APIClient, name: str) -> None:
    try:
        engine.remove_image(name, force=True)
    except APIError as error:
        if error.response is None or error.response.status_code != 404:
            raise
