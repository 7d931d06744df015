"""The config of this machine: which file, which rules, and whether the secrets that it names are where it says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from lj_image.config import Config, Secret, Source
from lj_image.doctor.finding import Finding, ok, problem, warning


def settings(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Show what the config says; names of places, never what they hold."""
    yield ok("config", str(config.file) if config.file else "no file: everything as it comes")
    yield from (ok("rule in force", rule) for rule in config.in_force())
    sections = (("indexes", config.values.indexes), ("archives", config.values.archives))
    for section, sources in sections:
        for name, source in sources.items():
            if source.username:
                yield _password(f"{section}.{name}", source, environ)
    for name, secret in config.values.secrets.items():
        yield _secret(f"secrets.{name}", secret, environ)


def _password(name: str, source: Source, environ: Mapping[str, str]) -> Finding:
    if source.password_env is not None:
        if source.password_env in environ:
            return ok(name, f"user {source.username}, password in {source.password_env}: set")
        hint = f"export {source.password_env}=…"
        return problem(name, f"user {source.username}, password in {source.password_env}: not set", hint)
    path = Path(source.password_file or "").expanduser()
    fault = _unreadable(path)
    if fault is None:
        return ok(name, f"user {source.username}, password in the file {path}")
    return problem(name, f"user {source.username}, password in the file {path}: {fault}", "write it into that file")


def _secret(name: str, secret: Secret, environ: Mapping[str, str]) -> Finding:
    """Look for a secret where `Secret.read` would; a release whose steps do not mount it does without."""
    if secret.env is not None and secret.env in environ:
        return ok(name, f"{secret.env}: set")
    path = Path(secret.file).expanduser() if secret.file else None
    if path is not None and _unreadable(path) is None:
        return ok(name, f"the file {path}")
    places = [*([f"{secret.env}: not set"] if secret.env else ()), *([f"{path}: {_unreadable(path)}"] if path else ())]
    return warning(name, "; ".join(places) or "no place named", "steps that mount it fail without")


def _unreadable(path: Path) -> str | None:
    if not path.is_file():
        return "no such file"
    if not os.access(path, os.R_OK):
        return "not readable"
    return "empty" if path.stat().st_size == 0 else None
