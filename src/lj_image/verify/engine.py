"""What verify asks of an engine, and its refusals in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker.errors
import requests.exceptions
from docker import APIClient

from lj_image.builders.docker.engine import find_image
from lj_image.errors import EngineError, VerificationError


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn what docker-py and requests raise into an EngineError that says what was being done."""
    try:
        yield
    except docker.errors.APIError as error:
        raise EngineError(f"{doing}: the engine says: {error.explanation or error}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise EngineError(
            f"{doing}: the engine did not answer: {error}", hint="see that it runs: docker version"
        ) from error


@contextmanager
def patient(api: APIClient) -> Iterator[None]:
    """Wait for the engine as long as it works: saving an image may be silent for minutes before its first byte."""
    before = api.timeout
    api.timeout = None  # type: ignore[assignment]  # requests waits without end then; the stubs do not know
    try:
        yield
    finally:
        api.timeout = before


def inspect_image(api: APIClient, reference: str, *, hint: str) -> dict[str, Any]:
    """Return what the engine knows of an image; raises VerificationError when it has none by that name."""
    if (found := find_image(api, reference)) is None:
        raise VerificationError(f"the engine has no image {reference}", hint=hint)
    return found


def has_gpu(api: APIClient) -> bool:
    """Say whether the engine can give a container a GPU."""
    with engine_errors("asking the engine what it can do"):
        return "nvidia" in (api.info().get("Runtimes") or {})
