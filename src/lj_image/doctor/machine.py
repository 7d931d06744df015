"""The machine itself: cache, proxies, certificates, and the programs that we call."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lj_image.config import Config
from lj_image.doctor.finding import GIB, Finding, free_space, ok, problem, warning
from lj_image.lock.http import bare, ssl_context
from lj_image.lock.uvtool import uv_program

PROGRAM_S: Final = 10.0
_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_BUNDLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "SSL_CERT_DIR")


def cache(config: Config) -> Iterator[Finding]:
    """See whether the cache can be written to, and has room."""
    folder = config.cache_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        hint = "make it writable, or set `cache:` in the config (or LJ_IMAGE_CACHE) to another folder"
        yield problem("cache", f"{folder} cannot be written to: {error.strerror or error}", hint)
        return
    yield ok("cache", f"{folder} is writable")
    free = shutil.disk_usage(folder).free
    yield free_space("cache's disk", free, str(folder), wanted_bytes=8 * GIB, needed_bytes=GIB)


def proxies(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Show the proxies that the environment names, without their passwords."""
    found = {name: value for name in _PROXIES if (value := environ.get(name) or environ.get(name.lower()))}
    if not found:
        yield ok("proxy", "none set")
        return
    excepted = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    shown = ", ".join(f"{name} {bare(value)}" for name, value in found.items())
    odd = [name for name, value in found.items() if "://" not in value]
    if odd:
        yield warning("proxy", shown, f"write {odd[0]} with its scheme, such as http://proxy.example:3128")
    elif "localhost" not in excepted and excepted != "*":
        yield warning("proxy", shown, "add localhost,127.0.0.1 to NO_PROXY, or a local registry is asked through it")
    else:
        yield ok("proxy", f"{shown}; not for {excepted}")


def certificates(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """See whether the certificates that are to be trusted can be read; raises LjImageError when they cannot."""
    ssl_context(environ)
    named = next((name for name in _BUNDLES if environ.get(name)), None)
    yield ok("certificates", f"{environ[named]} ({named})" if named else "those that come with httpx")
    bundle = config.values.build.ca_bundle
    if bundle is None:
        return
    path = Path(bundle).expanduser()
    if path.is_file():
        yield ok("build.ca_bundle", str(path))
    else:
        yield problem("build.ca_bundle", f"{path} is no file", "name a file of certificates in PEM form in the config")


def uv() -> Iterator[Finding]:
    """See whether uv runs; raises LjImageError when there is none."""
    program = uv_program()
    said = _version([program, "--version"])
    if said is None:
        yield problem("uv", f"{program} does not run", "run: pip install --force-reinstall uv")
    else:
        yield ok("uv", said)


def git() -> Iterator[Finding]:
    """See whether git is there: a release's revision and time come from it."""
    said = _version(["git", "--version"])
    if said is None:
        yield warning("git", "not found", "without it an image's label says revision `unknown`; install git")
    else:
        yield ok("git", said)


def _version(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
