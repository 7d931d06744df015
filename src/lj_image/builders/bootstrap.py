"""BaseOS: a Debian root file system made from packages, and the image that holds it.

A recipe becomes a tar in the cache by mmdebstrap or debootstrap, then an image in an engine. Neither tool's output is
taken as it is: the tar is sorted, its times clamped, its owners numeric, and what only the making left behind is gone.
"""

from __future__ import annotations

import copy
import fnmatch
import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from filelock import FileLock

from lj_image.catalog.release import BootstrapRecipe
from lj_image.errors import BuildError, EngineError

CHUNK_BYTES: Final = 1024 * 1024

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

EMPTIED: Final = tuple(
    PurePosixPath(folder)
    for folder in (
        "dev",  # the engine mounts its own; device nodes would keep rootless engines from unpacking the layer
        "proc",
        "run",
        "sys",
        "tmp",
        "var/cache/apt",
        "var/cache/ldconfig",  # holds inode numbers
        "var/lib/apt/lists",
        "var/log",
        "var/tmp",
    )
)
"""Folders that stay, without the files below them."""

LITTER: Final = (
    "etc/hostname",  # these two are the building machine's
    "etc/resolv.conf",
    "etc/machine-id",  # must differ from machine to machine
    "var/lib/dbus/machine-id",
    "etc/*-",  # passwd-, shadow-, …: the state before the last change
    "var/cache/debconf/*-old",
    "var/lib/dpkg/*-old",
)
"""Files that do not belong into an image."""

COMPILE: Final = """\
find / -xdev -name __pycache__ -prune -exec rm -rf {} +
if command -v python3 >/dev/null; then
    PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.*/
fi
"""
"""Run inside the new root. The packages' own bytecode holds times, which are clamped later, so it would be stale: pip
would compile itself anew at every start, three seconds each. By hash it is valid and the same everywhere (PEP 552)."""

Log = Callable[[str], None]


class ImageStore(Protocol):
    """What of docker-py's APIClient is used here."""

    def images(self, name: str | None = None) -> list[dict[str, Any]]:
        """List the images under this name."""

    def inspect_image(self, image: str) -> dict[str, Any]:
        """Describe an image."""

    def load_image(self, data: Iterable[bytes]) -> Iterable[dict[str, Any]]:
        """Take images in the format of `docker save`; yield messages."""


def bootstrap(recipe: BootstrapRecipe, cache_dir: Path, *, log: Log) -> Path:
    """Return the tar of the recipe's root file system, made now or taken from the cache."""
    rootfs = cache_dir / "bases" / f"{recipe.digest()}.tar"
    rootfs.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(rootfs.with_suffix(".lock")):
        if not rootfs.exists():
            log(f"making {recipe.name}: Debian {recipe.suite} with {', '.join(recipe.include) or 'no extras'}")
            _make(recipe, rootfs, log)
    return rootfs


def load(api: ImageStore, recipe: BootstrapRecipe, rootfs: Path) -> str:
    """Bring the root file system into the engine as an image and return its id; done before means nothing to do."""
    config = image_config(recipe, diff_id(rootfs))
    # docker-py is imported by builders/docker and verify alone; its APIError and what requests raises are OSErrors.
    try:
        present = _find(api, recipe.reference(), config)
        if present is None:
            _raise_refusal(api.load_image(_saved_image(recipe.reference(), config, rootfs)))
            present = _find(api, recipe.reference(), config)
    except OSError as error:
        raise EngineError(f"the engine did not take {recipe.reference()}: {error}") from error
    if present is None:
        raise EngineError(f"the engine took {recipe.reference()} but does not show it")
    return present


def image_config(recipe: BootstrapRecipe, layer: str) -> dict[str, Any]:
    """Return the image's configuration; `layer` is the diff id of its root file system. Every builder's base has it.

    Format: https://github.com/opencontainers/image-spec/blob/main/config.md
    """
    created = datetime.fromtimestamp(recipe.source_date_epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    env = [f"{name}={value}" for name, value in (("PATH", PATH), *recipe.env)]
    return {
        "architecture": recipe.architecture,
        "config": {"Cmd": ["bash"], "Env": env},
        "created": created,
        "history": [{"created": created, "created_by": f"lj-image: Debian {recipe.suite} from packages"}],
        "os": "linux",
        "rootfs": {"diff_ids": [layer], "type": "layers"},
    }


def diff_id(rootfs: Path, note: Path | None = None) -> str:
    """Return the digest by which an image config names this layer; kept in a note for as long as the file is the same.

    Hashing takes a quarter of a second, and every build asks. By default, the note stands beside the file.
    """
    seen = rootfs.stat()
    note, same = note or rootfs.with_suffix(".diff-id"), f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ino}"
    with suppress(OSError, ValueError):
        digest, known = note.read_text().split(" ", 1)
        if known.strip() == same:
            return digest
    with rootfs.open("rb") as file:
        digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    with suppress(OSError):  # a cache that is read-only
        partial = note.with_name(f".{note.name}.{os.getpid()}")
        partial.write_text(f"{digest} {same}\n")
        partial.replace(note)
    return digest


def normalise(raw: Path, target: Path, epoch: int) -> None:
    """Write the tar `raw` so that only names, modes and contents decide about the bytes of `target`."""
    with tarfile.open(raw, "r:") as source, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        for member, content in _in_order(source):
            out.addfile(_without_circumstances(member, epoch), source.extractfile(content) if content else None)


def _make(recipe: BootstrapRecipe, rootfs: Path, log: Log) -> None:
    make_raw = _tool()
    with tempfile.TemporaryDirectory(prefix=".making-", dir=rootfs.parent) as folder:
        raw, tidy = Path(folder, "raw.tar"), Path(folder, "tidy.tar")
        make_raw(recipe, raw, log)
        normalise(raw, tidy, recipe.source_date_epoch)
        tidy.replace(rootfs)


def _tool() -> Callable[[BootstrapRecipe, Path, Log], None]:
    if shutil.which("mmdebstrap", path=_search_path()):
        return _mmdebstrap
    if not shutil.which("debootstrap", path=_search_path()):
        raise BuildError(
            "making a Debian root file system needs mmdebstrap or debootstrap, and neither is installed",
            hint="run: apt-get install mmdebstrap",
        )
    if os.geteuid() != 0:
        raise BuildError("debootstrap needs root", hint="run: apt-get install mmdebstrap, which needs no root")
    return _debootstrap


def _mmdebstrap(recipe: BootstrapRecipe, raw: Path, log: Log) -> None:
    command = ["mmdebstrap", "--variant=minbase", f"--architectures={recipe.architecture}", "--format=tar"]
    # As debootstrap does it; else apt chooses the package usrmerge, which brings 50 MB of Perl.
    command.append("--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr")
    command.append(f'--customize-hook=chroot "$1" sh -c {shlex.quote(COMPILE)}')
    # By file descriptor: without root, the tool's user may not write into our folder.
    with raw.open("wb") as output:
        _run([*command, *_include(recipe), recipe.suite, "-"], recipe, log, output=output)


def _debootstrap(recipe: BootstrapRecipe, raw: Path, log: Log) -> None:
    tree = raw.with_name("tree")
    command = ["debootstrap", "--variant=minbase", f"--arch={recipe.architecture}", *_include(recipe)]
    _run([*command, recipe.suite, str(tree)], recipe, log)
    _run(["chroot", str(tree), "sh", "-c", COMPILE], recipe, log)
    # `/` stays on one file system, or what debootstrap left mounted would be packed.
    with raw.open("wb") as output:
        _run(["tar", "-C", str(tree), "--one-file-system", "--numeric-owner", "-c", "."], recipe, log, output=output)


def _include(recipe: BootstrapRecipe) -> list[str]:
    return [f"--include={','.join(recipe.include)}"] if recipe.include else []


def _run(command: Sequence[str], recipe: BootstrapRecipe, log: Log, output: io.BufferedWriter | None = None) -> None:
    """Run a tool; its messages go to the log, its last ones into the error."""
    last: deque[str] = deque(maxlen=8)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.PIPE,
        stderr=subprocess.PIPE if output else subprocess.STDOUT,
        env=_environment(recipe),
        text=True,
        errors="replace",
    ) as process:
        for line in (process.stderr if output else process.stdout) or ():
            last.append(line.rstrip())
            log(line.rstrip())
    if process.returncode:
        raise BuildError(
            f"{command[0]} could not make {recipe.name} (exit code {process.returncode}):\n" + "\n".join(last),
            hint="it needs the Debian mirror and its keyring (package debian-archive-keyring), "
            "and root or unprivileged user namespaces (package uidmap)",
        )


def _environment(recipe: BootstrapRecipe) -> dict[str, str]:
    """Keep the environment (proxies, certificates), but let neither language nor time zone decide."""
    fixed = {"PATH": _search_path(), "LC_ALL": "C.UTF-8", "TZ": "UTC", "DEBIAN_FRONTEND": "noninteractive"}
    return {**os.environ, **fixed, "SOURCE_DATE_EPOCH": str(recipe.source_date_epoch)}


def _search_path() -> str:
    """Return PATH with the sbin folders, where an ordinary user's PATH ends before debootstrap."""
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def _in_order(source: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarInfo | None]]:
    """Yield each member that stays, sorted by path, with the member that holds its content.

    Of several hard links to one file the first in order holds the content; where that is not so in `source`, the
    roles are swapped.
    """
    members = {_path(member.name): member for member in source}
    first: dict[PurePosixPath, PurePosixPath] = {}
    for path in sorted(path for path, member in members.items() if not _is_litter(path, member)):
        member = members[path]
        content = _path(member.linkname) if member.islnk() else path
        holder = first.setdefault(content, path)
        if not (member.islnk() or member.isreg()):
            yield member, None
        elif holder == path:
            yield _with(members[content], name=str(path)), members[content]
        else:
            yield _link(members[content], path, holder), None


def _path(name: str) -> PurePosixPath:
    return PurePosixPath("/", name).relative_to("/")  # `./etc/` and `etc` are one


def _is_litter(path: PurePosixPath, member: tarfile.TarInfo) -> bool:
    if path == PurePosixPath():
        return True
    if member.isdir():
        return False
    return any(folder in path.parents for folder in EMPTIED) or any(
        fnmatch.fnmatchcase(str(path), pattern) for pattern in LITTER if pattern.count("/") == str(path).count("/")
    )


def _with(member: tarfile.TarInfo, **fields: Any) -> tarfile.TarInfo:
    """Return a changed copy; `TarInfo.replace` came with Python 3.11.4, after Debian 12."""
    changed = copy.copy(member)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _link(content: tarfile.TarInfo, path: PurePosixPath, target: PurePosixPath) -> tarfile.TarInfo:
    return _with(content, name=str(path), linkname=str(target), type=tarfile.LNKTYPE, size=0)


def _without_circumstances(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    # Of the extended headers only attributes are content (file capabilities); the rest repeats other fields.
    attributes = {key: value for key, value in member.pax_headers.items() if key.startswith("SCHILY.xattr.")}
    mtime = min(int(member.mtime), epoch)
    return _with(member, name=str(_path(member.name)), mtime=mtime, uname="", gname="", pax_headers=attributes)


def _find(api: ImageStore, reference: str, config: dict[str, Any]) -> str | None:
    """Return the id of the image under this name if it is the very one, by what every kind of image store tells."""
    for image in api.images(name=reference):
        found = api.inspect_image(image["Id"])
        if (
            found["RootFS"]["Layers"] == config["rootfs"]["diff_ids"]
            and found["Config"]["Env"] == config["config"]["Env"]
        ):
            return str(found["Id"])
    return None


def _raise_refusal(messages: Iterable[dict[str, Any]]) -> None:
    for message in messages:
        if "error" in message:
            raise EngineError(f"the engine refuses the base image: {message['error']}")


def _saved_image(reference: str, config: dict[str, Any], rootfs: Path) -> Iterator[bytes]:
    """Yield what `docker save` would have written, without holding it.

    Format: "Combined Image JSON + Filesystem Changeset Format" of the Docker image specification v1.2.
    """
    config_bytes = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    config_name = f"{hashlib.sha256(config_bytes).hexdigest()}.json"
    layer_name = f"{config['rootfs']['diff_ids'][0].removeprefix('sha256:')}.tar"
    manifest = [{"Config": config_name, "RepoTags": [reference], "Layers": [layer_name]}]
    yield from _file("manifest.json", json.dumps(manifest).encode())
    yield from _file(config_name, config_bytes)
    size = rootfs.stat().st_size
    yield _header(layer_name, size)
    with rootfs.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK_BYTES), b"")
    yield _padding(size) + bytes(2 * tarfile.BLOCKSIZE)


def _file(name: str, content: bytes) -> Iterator[bytes]:
    yield _header(name, len(content)) + content + _padding(len(content))


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
