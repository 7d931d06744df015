"""A source distribution becomes a wheel, once: built by pip in a container of the base, kept in the store.

The container is thrown away and never becomes a layer, so credentials and certificates may be copied into it: that
works with an engine on another machine too, where a bind mount would not.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

import docker
from docker.errors import NotFound
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from lj_image.builders.docker.base import BaseImage
from lj_image.builders.docker.engine import translated
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import CHUNK_BYTES, ArtifactStore

if TYPE_CHECKING:
    from lj_image.lock.http import Address

ROOM: Final = "lj-image"
"""The folder below `/tmp` of the container that holds what goes in and what comes out."""
SOURCE_DATE_EPOCH: Final = "315532800"
"""1980-01-01, the first moment that a zip can hold: the same source gives the same wheel at any time."""
_LAST_LINES: Final = 15
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
    record = _record_path(store, item.artifact, base, env)
    if (known := _known(record, store)) is not None:
        return known
    store.prepare()
    with store.writing(record.stem):
        if (known := _known(record, store)) is not None:
            return known
        say(f"building a wheel of {item.name} {item.version} from its source, once")
        wheel = _build(api, base, item, store, config, env)
        _remember(record, wheel, item, base, env)
        return wheel


def _record_path(store: ArtifactStore, source: Artifact, base: BaseImage, env: Mapping[str, str]) -> Path:
    parts = json.dumps([source.sha256, base.image_id, sorted(env.items())])
    return store.root.parent / "wheels" / f"{hashlib.sha256(parts.encode()).hexdigest()}.json"


def _known(record: Path, store: ArtifactStore) -> Artifact | None:
    try:
        facts = json.loads(record.read_text())
        wheel = Artifact(str(facts["file"]), int(facts["size_bytes"]), str(facts["sha256"]), "wheel")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return wheel if store.has(wheel) else None


def _remember(record: Path, wheel: Artifact, item: LockedDistribution, base: BaseImage, env: Mapping[str, str]) -> None:
    facts = {
        "file": wheel.file,
        "size_bytes": wheel.size_bytes,
        "sha256": wheel.sha256,
        "source": {"file": item.artifact.file, "sha256": item.artifact.sha256},
        "base": base.image_id,
        "env": dict(sorted(env.items())),
    }
    record.parent.mkdir(parents=True, exist_ok=True)
    draft = record.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(facts, indent=2) + "\n")
    draft.replace(record)


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
    return {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH, "PYTHONHASHSEED": "0", **proxies, **pip, **env}


def _settings(config: Config) -> dict[str, bytes | Path]:
    """Return pip's settings as files: indexes with their passwords, and the certificates to trust."""
    from lj_image.lock.index import index_addresses  # late: the HTTP client is not needed for a wheel that is there

    *extra, default = [_with_password(address) for address in index_addresses("pypi", config)]
    lines = ["[global]", f"index-url = {default}"]
    if extra:
        lines.append(f"extra-index-url = {' '.join(extra)}")
    files: dict[str, bytes | Path] = {}
    if (bundle := _ca_bundle(config)) is not None:
        lines.append(f"cert = /tmp/{ROOM}/ca.pem")
        files["ca.pem"] = bundle
    return {**files, "pip.conf": ("\n".join(lines) + "\n").encode()}


def _ca_bundle(config: Config) -> Path | None:
    named = config.values.build.ca_bundle
    candidates = (named, os.environ.get("SSL_CERT_FILE"), os.environ.get("REQUESTS_CA_BUNDLE"))
    paths = (Path(candidate).expanduser() for candidate in candidates if candidate)
    return next((path for path in paths if path.is_file()), None)


def _with_password(address: Address) -> str:
    if address.username is None:
        return address.url
    parts = urlsplit(address.url)
    user = f"{quote(address.username, safe='')}:{quote(address.password or '', safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


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
    with tempfile.TemporaryFile() as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.seek(0)
        with tarfile.open(fileobj=spool) as tar:
            wheels = [member for member in tar.getmembers() if member.name.endswith(".whl") and member.isfile()]
            if len(wheels) != 1 or (content := tar.extractfile(wheels[0])) is None:
                raise BuildError(f"{item.artifact.file} gave {len(wheels)} wheels, not one")
            file = Path(wheels[0].name).name
            _check(file, item)
            return store.add(iter(lambda: content.read(CHUNK_BYTES), b""), file, "wheel")


def _check(file: str, item: LockedDistribution) -> None:
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise BuildError(f"{item.artifact.file} gave a wheel with an impossible name: {error}") from None
    if (canonicalize_name(name), version) != (item.name, Version(item.version)):
        raise BuildError(f"{item.artifact.file} gave {file}, not {item.name} {item.version}")


def _failed(api: docker.APIClient, container: str, item: LockedDistribution, code: int) -> BuildError:
    output = api.logs(container, stdout=True, stderr=True, tail=_LAST_LINES).decode(errors="replace").rstrip()
    return BuildError(
        f"{item.name} {item.version} cannot be built from its source (pip wheel ended with {code})",
        hint=f"the end of its output:\n{output}\n"
        "build requirements come from the index; see `build.network` and `build.ca_bundle` of the config",
    )
