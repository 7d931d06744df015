"""A source distribution becomes a wheel, once: built by pip in a container of the base, kept in the store.

The container is thrown away and never becomes a layer, so credentials and certificates may be copied into it: that
works with an engine on another machine too, where a bind mount would not.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import docker
from docker.errors import NotFound

from lj_image.builders.docker.base import BaseImage
from lj_image.builders.docker.engine import translated
from lj_image.builders.source_wheels.notes import SourceBuild, built_once, chain_id
from lj_image.builders.source_wheels.settings import FIXED, LAST_LINES, ca_bundle, requirement_indexes, with_password
from lj_image.builders.source_wheels.storing import stored
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import CHUNK_BYTES, ArtifactStore

ROOM: Final = "lj-image"
"""The folder below `/tmp` of the container that holds what goes in and what comes out."""
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
Say = Callable[[str], None]


def build_wheel(
    api: docker.APIClient,
    base: BaseImage,
    item: LockedDistribution,
    store: ArtifactStore,
    config: Config,
    *,
    env: Mapping[str, str],
    say: Say,
) -> Artifact:
    """Return the wheel of a source distribution that is in the store, built with `env` in the base's Python.

    Built once per source, base and environment. Raises BuildError with the end of pip's output.
    """

    def make() -> Artifact:
        say(f"building a wheel of {item.name} {item.version} from its source, once")
        return _build(api, base, item, store, config, env)

    wanted = SourceBuild(item, chain_id(base.diff_ids), env)
    return built_once(wanted, store, make, where="a container of the base")


def _build(
    api: docker.APIClient,
    base: BaseImage,
    item: LockedDistribution,
    store: ArtifactStore,
    config: Config,
    env: Mapping[str, str],
) -> Artifact:
    settings = _settings(config)
    variables = _variables(env)
    room = f"/tmp/{ROOM}"
    command = ["-m", "pip", "wheel", "--no-deps", "--wheel-dir", f"{room}/out", f"{room}/{item.artifact.file}"]
    with translated(f"building a wheel of {item.name}"), _container(api, base, command, variables, config) as container:
        with _archive({**settings, item.artifact.file: store.require(item.artifact)}) as files:
            api.put_archive(container, "/tmp", files)
        api.start(container)
        code = int(api.wait(container)["StatusCode"])  # without a timeout: a compiler may be silent for long
        if code != 0:
            raise _failed(api, container, item, code)
        return _taken_out(api, container, item, store)


@contextmanager
def _container(
    api: docker.APIClient, base: BaseImage, command: list[str], variables: Mapping[str, str], config: Config
) -> Iterator[str]:
    """Create a container of the base, and take it away whatever happens."""
    host_config = api.create_host_config(network_mode=config.values.build.network)
    made = api.create_container(
        base.image_id,
        command,
        entrypoint=["python3"],  # not the base's own, which may print or refuse
        environment=dict(variables),
        host_config=host_config,
        user="0",
    )
    try:
        yield str(made["Id"])
    finally:
        with suppress(NotFound):
            api.remove_container(made["Id"], force=True, v=True)


def _variables(env: Mapping[str, str]) -> dict[str, str]:
    proxies = {name: os.environ[name] for name in _PROXIES if os.environ.get(name)}
    pip = {
        "PIP_CONFIG_FILE": f"/tmp/{ROOM}/pip.conf",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONSTRAINT": "",  # an NGC base sets it for installs, and it would bind build requirements too
    }
    return {**FIXED, **proxies, **pip, **env}


def _settings(config: Config) -> dict[str, bytes | Path]:
    """Return pip's settings as files: indexes with their passwords, and the certificates to trust."""
    *extra, default = [with_password(address) for address in requirement_indexes(config)]
    lines = ["[global]", f"index-url = {default}"]
    if extra:
        lines.append(f"extra-index-url = {' '.join(extra)}")
    files: dict[str, bytes | Path] = {}
    if (bundle := ca_bundle(config)) is not None:
        lines.append(f"cert = /tmp/{ROOM}/ca.pem")
        files["ca.pem"] = bundle
    return {**files, "pip.conf": ("\n".join(lines) + "\n").encode()}


@contextmanager
def _archive(files: Mapping[str, bytes | Path]) -> Iterator[Any]:
    """Give files as a tar, readable by root alone: one of them may hold a password."""
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(f"{ROOM}/{name}")
                member.mode = 0o600
                with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
                    member.size = source.seek(0, io.SEEK_END)
                    source.seek(0)
                    tar.addfile(member, source)
        spool.seek(0)
        yield spool


def _taken_out(api: docker.APIClient, container: str, item: LockedDistribution, store: ArtifactStore) -> Artifact:
    chunks, _ = api.get_archive(container, f"/tmp/{ROOM}/out")
    with tempfile.TemporaryFile() as spool, tempfile.TemporaryDirectory(prefix="lj-image-wheel-") as folder:
        for chunk in chunks:
            spool.write(chunk)
        spool.seek(0)
        with tarfile.open(fileobj=spool) as tar:
            wheels = [member for member in tar.getmembers() if member.name.endswith(".whl") and member.isfile()]
            if len(wheels) != 1 or (content := tar.extractfile(wheels[0])) is None:
                raise BuildError(f"{item.artifact.file} gave {len(wheels)} wheels, not one")
            wheel = Path(folder, Path(wheels[0].name).name)
            with wheel.open("wb") as target:
                shutil.copyfileobj(content, target, CHUNK_BYTES)
        return stored(wheel, item, store)


def _failed(api: docker.APIClient, container: str, item: LockedDistribution, code: int) -> BuildError:
    output = api.logs(container, stdout=True, stderr=True, tail=LAST_LINES).decode(errors="replace").rstrip()
    return BuildError(
        f"{item.name} {item.version} cannot be built from its source (pip wheel ended with {code})",
        hint=f"the end of its output:\n{output}\n"
        "build requirements come from the index; see `build.network` and `build.ca_bundle` of the config",
    )
