"""What opens registries for those who know nothing of a config: each as this machine reaches it."""

from __future__ import annotations

from typing import Final

from lj_image.config import Config
from lj_image.oci.capabilities import Capabilities
from lj_image.registry.access import Patience
from lj_image.registry.client import Intent, Registry
from lj_image.registry.configured import registry_at
from lj_image.release import asking
from lj_image.release.source import OpenRegistry

_PATIENT: Final = Patience()


def opener(config: Config, *, patience: Patience = _PATIENT, deadline_s: float | None = None) -> OpenRegistry:
    """Return what opens registries by their host, for those who know nothing of a config."""

    def open_registry(host: str, *, intent: Intent, capabilities: Capabilities | None = None) -> Registry:
        return registry_at(
            host, config, intent=intent, capabilities=capabilities, patience=patience, deadline_s=deadline_s
        )

    return open_registry


def brief_opener(config: Config) -> asking.OpenRegistry:
    """Return what opens registries that are given up soon, to ask about a tag."""
    return lambda host, capabilities: registry_at(
        host, config, intent="pull", capabilities=capabilities, patience=asking.BRIEF
    )
