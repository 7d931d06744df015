"""Runs uv, and reads what it writes: annotated requirements for the graph, `pylock.toml` for the files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import canonicalize_name

from lj_image.errors import LjImageError
from lj_image.lock.tags import MACHINES

_FOREIGN_SETTINGS: Final = frozenset(
    {
        *("UV_CONSTRAINT", "UV_BUILD_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE", "UV_FIND_LINKS", "UV_NO_SOURCES"),
        *("UV_RESOLUTION", "UV_PRERELEASE", "UV_FORK_STRATEGY", "UV_TORCH_BACKEND", "UV_CUSTOM_COMPILE_COMMAND"),
        *("UV_NO_BINARY", "UV_NO_BINARY_PACKAGE", "UV_NO_BUILD", "UV_NO_BUILD_PACKAGE"),
        *("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_WORKING_DIR", "VIRTUAL_ENV"),
    }
)
"""Settings that a user made for other projects and that would change what is resolved here."""
_GLIBC_MINORS: Final = (17, 28, *range(31, 41))
"""The platforms that `uv pip compile --python-platform` knows."""
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:==(?P<version>\S+)| @ \S+)")
_NO_EXTRA = re.compile(r"The package `(?P<name>[^`=]+)==[^`]+` does not have an extra named `(?P<extra>[^`]+)`")
_VIA = re.compile(r" +# +(?:via *)?(?P<name>.*)")


class UvFailed(Exception):
    """uv found no solution, or could not look for one; holds its words."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


@dataclass(frozen=True, slots=True)
class Resolved:
    """A distribution at the version that uv chose."""

    name: str
    version: str
    required_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file of a distribution, as an index offers it; what the index does not say is None."""

    file: str
    url: str
    size_bytes: int | None
    sha256: str | None
    yanked: bool = False
    requires_python: str | None = None
    has_metadata: bool = False
    """Whether the index serves the file's metadata on its own (PEP 658)."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Python and platform to resolve for, as uv names them."""

    python: str
    platform: str

    @classmethod
    def of(cls, python: str, glibc: str, architecture: str) -> Target:
        """Return the newest platform that uv knows and the base can run."""
        minor = max((known for known in _GLIBC_MINORS if known <= int(glibc.split(".")[1])), default=_GLIBC_MINORS[0])
        return cls(python, f"{MACHINES[architecture]}-manylinux_2_{minor}")


def uv_program() -> str:
    """Return the uv that is installed with us, else that of the PATH."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        pass
    if (found := shutil.which("uv")) is None:
        raise LjImageError("uv is not installed; it resolves the distributions", hint="run: pip install uv")
    return found


def uv_environment(environ: Mapping[str, str], credentials: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the environment for uv: the user's indexes, cache and certificates, and passwords by index name."""
    env = {name: value for name, value in environ.items() if name not in _FOREIGN_SETTINGS}
    env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    if "UV_DEFAULT_INDEX" not in env and "UV_INDEX_URL" not in env and "PIP_INDEX_URL" in env:
        env["UV_DEFAULT_INDEX"] = env["PIP_INDEX_URL"]
    bundle = env.get("REQUESTS_CA_BUNDLE") or env.get("PIP_CERT")
    if bundle and "SSL_CERT_FILE" not in env and Path(bundle).is_file():
        env["SSL_CERT_FILE"] = bundle
    for index, (username, password) in credentials.items():
        prefix = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", index.upper())
        env |= {f"{prefix}_USERNAME": username, f"{prefix}_PASSWORD": password}
    return env


def compile_versions(
    folder: Path,
    target: Target,
    env: Mapping[str, str],
    keep: Iterable[str],
    refresh: Iterable[str],
    given: Mapping[str, str],
    extras: Mapping[str, tuple[str, ...]],
) -> tuple[Resolved, ...]:
    """Resolve the project in `folder`.

    `keep` are `name==version` lines to prefer where they still fit, `given` the versions of what is asked for by
    address, `extras` those that the project asks for, by normalised name. One that its distribution does not have is
    a warning to uv; here it raises UvFailed.
    """
    output = folder / "requirements.txt"
    output.write_text("".join(f"{line}\n" for line in keep))
    options = [f"--refresh-package={name}" for name in refresh]
    quiet = () if extras else ("--quiet",)  # which would keep the warnings, too
    said = _run(folder, target, env, [*quiet, *options, "--annotation-style=split", "--no-header", "-o", output.name])
    for found in _NO_EXTRA.finditer(said):  # other distributions may ask each other for what is not there
        if canonicalize_name(found["extra"]) in extras.get(canonicalize_name(found["name"]), ()):
            raise UvFailed(found[0])
    return parse_requirements(output.read_text(), given)


def compile_files(
    folder: Path, target: Target, env: Mapping[str, str], versions: Iterable[Resolved]
) -> dict[str, tuple[OfferedFile, ...]]:
    """Return the files that fit the target, for each of the versions found by `compile_versions`.

    What uv has just read is in its cache, so it need not ask again, and both answers come from the same pages.
    """
    pins = folder / "pins.txt"
    pins.write_text("".join(f"{item.name}=={item.version}\n" for item in versions))
    output = folder / "pylock.toml"
    options = ["--quiet", "-c", pins.name, "--format=pylock.toml", "-o", output.name]
    try:
        _run(folder, target, env, [*options, "--offline"])
    except UvFailed:  # a user may have turned the cache off
        _run(folder, target, env, options)
    return parse_pylock(output.read_text())


def parse_requirements(text: str, given: Mapping[str, str] | None = None) -> tuple[Resolved, ...]:
    """Read uv's annotated requirements.

    What was asked for by address (`name @ file:…`) has no version there: `given` has it, else it is left out.
    """
    known = given or {}
    found: dict[str, tuple[str | None, list[str]]] = {}
    parents: list[str] = []
    for line in text.splitlines():
        if (entry := _ENTRY.match(line)) is not None:
            parents = []
            name = canonicalize_name(entry["name"])
            found[name] = (entry["version"] or known.get(name), parents)
        elif (via := _VIA.fullmatch(line)) is not None and via["name"] and " " not in via["name"]:
            parents.append(canonicalize_name(via["name"]))
    return tuple(
        Resolved(name, version, tuple(sorted(parents))) for name, (version, parents) in sorted(found.items()) if version
    )


def parse_pylock(text: str) -> dict[str, tuple[OfferedFile, ...]]:
    """Read the files of each distribution from a `pylock.toml` (PEP 751)."""
    packages: list[dict[str, Any]] = tomllib.loads(text).get("packages", [])
    return {canonicalize_name(package["name"]): tuple(_offered(package)) for package in packages}


def _offered(package: dict[str, Any]) -> Iterable[OfferedFile]:
    entries = [*package.get("wheels", ()), *(package[kind] for kind in ("sdist", "archive") if kind in package)]
    for entry in entries:
        url = entry.get("url") or Path(entry["path"]).absolute().as_uri()
        file = entry.get("name") or unquote(urlsplit(url).path.rpartition("/")[2])
        yield OfferedFile(file, url, entry.get("size"), entry.get("hashes", {}).get("sha256"))


def _run(folder: Path, target: Target, env: Mapping[str, str], options: list[str]) -> str:
    """Return what uv says beside its answer; raises UvFailed."""
    command = [
        uv_program(),
        *("pip", "compile", "pyproject.toml"),
        *("--python", sys.executable, "--python-version", target.python, "--python-platform", target.platform),
        *options,
    ]
    done = subprocess.run(command, cwd=folder, env=dict(env), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise UvFailed(_cleaned(done.stderr, folder, env))
    return done.stderr


def _cleaned(words: str, folder: Path, env: Mapping[str, str]) -> str:
    """Drop our temporary folder, and any password that uv would show."""
    words = words.replace(f"{folder.as_uri()}/", "").replace(f"{folder}{os.sep}", "").strip()
    for name, value in env.items():
        if name.startswith("UV_INDEX_") and name.endswith("_PASSWORD") and value:
            words = words.replace(value, "****").replace(quote(value, safe=""), "****")
    return words
