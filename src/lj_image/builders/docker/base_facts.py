"""Ask a base image for what the resolver must know of it: Python, platform, packages, its own complaints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import docker
from docker.errors import APIError

from lj_image.builders.docker.engine import foreign, translated
from lj_image.catalog.release import Platform
from lj_image.errors import EngineError

SCRIPT: Final = r"""
import importlib.metadata as metadata, json, platform, re, subprocess, sys
def run(*command):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=env)
check = run(sys.executable, "-m", "pip", "check")
complaints = {}
for line in check.stdout.splitlines():
    found = re.match(r"(\S+) \S+ (?:requires (.+), which is not|has requirement ([^;]+)(?:;.*)?, but you)", line)
    if found:
        complaints.setdefault(found.group(1), []).append(found.group(2) or found.group(3))
target = run(sys.executable, "-c", "import pip._internal.locations as l; print(l.get_scheme('x').purelib)")
print(json.dumps({
    "python": platform.python_version(),
    "glibc": platform.libc_ver()[1],
    "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    "site_packages": target.stdout.strip(),
    "executable": sys.executable,
    "packages": {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]},
    "complaints": complaints,
}))
"""
"""Run by the base's own Python; needs nothing but its standard library and pip."""

CANNOT_RUN: Final = "exec format error"
"""What the kernel says of a program for another processor (ENOEXEC)."""


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """What a base said of itself."""

    python: str
    glibc: str
    architecture: str
    site_packages: str
    executable: str
    packages: dict[str, str]
    complaints: dict[str, list[str]]


def ask_base(api: docker.APIClient, reference: str, platform: Platform) -> FoundFacts:
    """Run the base once, without a network, and return what it says.

    Raises EngineError when it cannot answer, when the engine cannot run it, or when it is for another architecture.
    """
    answer, status = _run(api, reference, platform)
    if CANNOT_RUN in answer:
        raise _cannot_run(reference, platform) if foreign(api, platform) else _made_for_another(reference, platform)
    try:
        values: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise EngineError(
            f"the base {reference} did not say what is in it (exit code {status}): {answer[-400:].strip()}",
            hint="a base needs python3 with pip",
        ) from None
    facts = FoundFacts(**values)
    if facts.architecture != platform.architecture:
        raise _made_for_another(reference, platform)
    return facts


def _made_for_another(reference: str, platform: Platform) -> EngineError:
    return EngineError(
        f"the base {reference} is not made for {platform.architecture}",
        hint=f"it may not be published for {platform}: see `architectures` of the release",
    )


def _cannot_run(reference: str, platform: Platform) -> EngineError:
    return EngineError(
        f"this engine cannot run {reference} for {platform}: its processor is another one",
        hint=f"set DOCKER_HOST to an engine on {platform.architecture}, for example ssh://user@machine,\n"
        f"or give this engine's machine an emulator: apt-get install qemu-user-static binfmt-support",
    )


def _run(api: docker.APIClient, reference: str, platform: Platform) -> tuple[str, int]:
    """Return what the base wrote, and its exit code; an engine that cannot run it says so among what it wrote."""
    wanted = foreign(api, platform)
    with translated(f"running {reference}"):
        config = api.create_host_config(network_mode="none")
        container = api.create_container(
            reference, entrypoint=["python3", "-c", SCRIPT], command=[], host_config=config, platform=wanted
        )["Id"]
        try:
            api.start(container)
            status = int(api.wait(container, timeout=None)["StatusCode"])
            return api.logs(container).decode(errors="replace"), status
        except APIError as error:  # where the runtime itself starts the program, the engine refuses to start
            if CANNOT_RUN not in str(error.explanation):
                raise
            return CANNOT_RUN, 1
        finally:
            api.remove_container(container, force=True, v=True)


def facts_yaml(base: str, digest: str | None, facts: FoundFacts, made_by: str) -> str:
    """Return the text of `bases/<facts>.yaml`."""
    import yaml

    values = {
        "base": base,
        **({"digest": digest} if digest else {}),
        "python": facts.python,
        "glibc": facts.glibc,
        "architecture": facts.architecture,
        "site_packages": facts.site_packages,
        "executable": facts.executable,
        "packages": dict(sorted(facts.packages.items(), key=lambda item: item[0].lower())),
        **({"complaints": facts.complaints} if facts.complaints else {}),
    }
    return f"# Generated by: {made_by}\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
