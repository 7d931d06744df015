"""The agent: runs inside the image, answers many questions at once, as JSON on stdin and stdout.

Sent as text through the exec channel, so: the standard library only, Python 3.8 or newer, nothing imported from
lj_image. Asked {"key": {"op": …, arguments}}, it answers {"key": {"value": …}} or {"key": {"error": "…"}}.
"""

from __future__ import annotations

# Paths are strings here: they come and go as JSON.
# ruff: noqa: PTH113, PTH115, PTH118, PTH119, PTH120, PTH123, PTH207
import concurrent.futures
import csv
import glob
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import runpy
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Loads one library and calls one function: in a process of its own, since a library may end the process that loads it.
# A neighbour that the loader does not find (wheels keep each library in a folder of its own) is loaded first.
CALL = r"""
import ctypes, json, os, re, sys
path, function, outputs, folders = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]

def load(path, depth=0):
    while True:
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            missing = re.match(r"([^/:]+\.so[^/:]*): cannot open shared object", str(error))
            found = [os.path.join(f, missing.group(1)) for f in folders] if missing else []
            found = [f for f in found if os.path.exists(f)]
            if not found or depth > 20 or os.path.basename(path) == missing.group(1):
                raise
            load(found[0], depth + 1)

library = load(path)
called = getattr(library, function)
if outputs:
    numbers = [ctypes.c_int() for _ in range(outputs)]
    code = called(*(ctypes.byref(n) for n in numbers))
    values = [n.value for n in numbers]
    if code:
        sys.exit("%s returned error %d" % (function, code))
else:
    called.restype = ctypes.c_size_t
    values = [called()]
stem = os.path.basename(path).split(".so")[0]
maps = open("/proc/self/maps").read()
loaded = re.search(r"(/\S*%s\.so\S*)" % re.escape(stem), maps)
print(json.dumps({"values": values, "path": loaded.group(1) if loaded else path}))
"""


def main() -> None:
    """Answer all questions, several at a time; the questions' order is kept."""
    sys.path[:] = [entry for entry in sys.path if entry]  # `python -c` puts the working directory first
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
    questions = json.load(sys.stdin)
    with concurrent.futures.ThreadPoolExecutor(max(4, os.cpu_count() or 1)) as pool:
        answers = {key: pool.submit(answer, question) for key, question in questions.items()}
        json.dump({key: future.result() for key, future in answers.items()}, sys.stdout)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return {"value": …}, or {"error": …} when the question has no answer here."""
    arguments = dict(question)
    operation = OPERATIONS[arguments.pop("op")]
    try:
        return {"value": operation(**arguments)}
    except Exception as error:  # whatever it is, it is the answer to this question, and the others go on
        return {"error": str(error) or type(error).__name__}


def distributions() -> list[dict[str, str]]:
    """Return every installed distribution, shadowed ones too, in the order of the search path."""
    found = []
    for item in importlib.metadata.distributions():
        name, version = item.metadata["Name"], item.metadata["Version"]
        if name:
            found.append({"name": name, "version": version or "", "location": str(item.locate_file(""))})
    return found


def recorded(names: list[str]) -> dict[str, dict[str, str] | None]:
    """Return, per distribution, path -> digest of each file it owns; None for one that is not installed."""
    return {name: _recorded(name) for name in names}


def _recorded(name: str) -> dict[str, str] | None:
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = sorted({os.path.normpath(str(found.locate_file(file))) for file in found.files or ()})
    paths = paths or sorted(_below_top_level(found))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return dict(zip(paths, pool.map(_digest_or_state, paths)))  # noqa: B905  # `strict` came with 3.10


def _below_top_level(found: Any) -> Iterator[str]:
    """Yield the files of a distribution that has no list of them, as distributions' packages often have none."""
    for name in (found.read_text("top_level.txt") or found.metadata["Name"].replace("-", "_")).split():
        for path in glob.glob(os.path.join(str(found.locate_file("")), name + "*")):
            if os.path.isfile(path):
                yield path
            for folder, _, files in os.walk(path):
                yield from (os.path.join(folder, file) for file in files if not file.endswith(".pyc"))


def _digest_or_state(path: str) -> str:
    try:
        return _sha256(path)
    except OSError as error:
        return error.strerror or "unreadable"


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            block = file.read(1 << 20)
            if not block:
                return digest.hexdigest()
            digest.update(block)


def owned(paths: list[str]) -> list[str]:
    """Return those of the paths that some wheel brought (not what pip wrote itself), or that dpkg lists."""
    wanted, found = set(paths), set()
    names = {os.path.basename(path) for path in paths}
    for item in importlib.metadata.distributions():
        for row in csv.reader((item.read_text("RECORD") or "").splitlines()):
            if len(row) > 1 and row[1] and os.path.basename(row[0]) in names:
                found.update({os.path.normpath(str(item.locate_file(row[0])))} & wanted)
    for listing in glob.glob("/var/lib/dpkg/info/*.list") if wanted - found else ():
        with open(listing, errors="surrogateescape") as lines:
            found.update(wanted.intersection(line.rstrip("\n") for line in lines))
    return sorted(found)


def library(
    stem: str,
    function: str,
    outputs: int,
    sonames: list[str],
    distributions: list[str] | None = None,
    below: str | None = None,
) -> dict[str, Any]:
    """Call a library's version function; it is looked for where its component has it, nowhere else.

    In a distribution's files, below an archive's path, or, for a base, as programs would find it: the loader
    first, then the places that wheels and CUDA use.
    """
    if below is not None:
        candidates = _libraries_in(_walk(below), stem)
        where = f"below {below}"
    elif distributions is not None:
        candidates = _libraries_in(_files_of(distributions), stem)
        where = "in the files of " + ", ".join(distributions)
    else:
        candidates = [*sonames, *_libraries_in(_usual_places(stem), stem)]
        where = "by the loader or below nvidia/*/lib"
    errors: list[str] = []
    for path in candidates:
        try:
            return _call(path, function, outputs)
        except RuntimeError as error:
            errors.append(str(error))
    raise RuntimeError(f"lib{stem}.so was not found {where}" if not candidates else errors[-1])


def _call(path: str, function: str, outputs: int) -> dict[str, Any]:
    command = [sys.executable, "-c", CALL, path, function, str(outputs), os.path.dirname(path), *_wheel_folders()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True, cwd="/")
    if done.returncode:
        raise RuntimeError(f"{path}: {_last_line(done.stderr) or _ending(done.returncode)}")
    called: dict[str, Any] = json.loads(done.stdout)
    return called


def _ending(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _libraries_in(paths: Iterator[str], stem: str) -> list[str]:
    """Return the libraries of that name, each file once, the plainest name first."""
    pattern = re.compile(rf"lib{re.escape(stem)}\.so(\.[0-9.]+)?$")
    found = {os.path.realpath(path): path for path in paths if pattern.match(os.path.basename(path))}
    return sorted(found.values(), key=lambda path: (len(os.path.basename(path)), path))


def _walk(folder: str) -> Iterator[str]:
    for parent, _, files in os.walk(folder):
        yield from (os.path.join(parent, file) for file in files)


def _files_of(names: list[str]) -> Iterator[str]:
    for name in names:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield from (os.path.normpath(str(found.locate_file(file))) for file in found.files or ())


def _wheel_folders() -> list[str]:
    """Return the folders where NVIDIA's wheels keep libraries."""
    return [folder for entry in sys.path for folder in sorted(glob.glob(os.path.join(entry, "nvidia/*/lib")))]


def _usual_places(stem: str) -> Iterator[str]:
    folders = ["/usr/local/cuda/lib64", *glob.glob("/usr/local/cuda/targets/*/lib"), *_wheel_folders()]
    for folder in folders:
        yield from glob.glob(os.path.join(folder, f"lib{stem}.so*"))


def torch_version() -> str:
    """Return torch.__version__ from the file that torch itself takes it from, without seconds of importing."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("torch is not installed")
    return str(runpy.run_path(os.path.join(next(iter(spec.submodule_search_locations)), "version.py"))["__version__"])


def imports(module: str, timeout_s: float) -> dict[str, Any]:
    """Import a module in a process of its own."""
    command = [sys.executable, "-c", "import importlib, sys; importlib.import_module(sys.argv[1])", module]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            text=True,
            cwd="/",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return {"imported": False, "message": f"not imported after {timeout_s:g} s"}
    message = "" if not done.returncode else _last_line(done.stderr) or _ending(done.returncode)
    return {"imported": not done.returncode, "message": message}


def pip_check() -> dict[str, Any]:
    """Return what `pip check` says."""
    command = [sys.executable, "-m", "pip", "check"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, text=True, cwd="/", errors="replace"
    )
    return {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def run(command: str, timeout_s: float) -> dict[str, Any]:
    """Run a shell command."""
    done = subprocess.run(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        text=True,
        errors="replace",
    )
    return {"exit_code": done.returncode, "output": done.stdout}


def files(paths: list[str]) -> dict[str, dict[str, Any] | None]:
    """Return digest, mode, owner and link target of each path; None for one that is absent."""
    return {path: _file(path) for path in paths}


def _file(path: str) -> dict[str, Any] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    regular = stat.S_ISREG(status.st_mode)
    return {
        "type": "file" if regular else "link" if stat.S_ISLNK(status.st_mode) else "other",
        "sha256": _sha256(path) if regular else None,
        "link": os.readlink(path) if stat.S_ISLNK(status.st_mode) else None,
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
    }


def read_text(path: str) -> str:
    """Return a text file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def os_release() -> dict[str, str]:
    """Return /etc/os-release as a table."""
    rows = re.findall(r"^(\w+)=(.*)$", read_text("/etc/os-release"), re.MULTILINE)
    return {name: value.strip("\"'") for name, value in rows}


def dpkg() -> dict[str, str]:
    """Return the installed Debian packages and their versions."""
    command = ["dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${db:Status-Status}\n"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True, check=True)
    rows: list[tuple[str, ...]] = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[2] == "installed"}


OPERATIONS: dict[str, Callable[..., Any]] = {
    "distributions": distributions,
    "recorded": recorded,
    "owned": owned,
    "library": library,
    "torch_version": torch_version,
    "python_version": platform.python_version,
    "imports": imports,
    "pip_check": pip_check,
    "run": run,
    "files": files,
    "read_text": read_text,
    "os_release": os_release,
    "dpkg": dpkg,
}

if __name__ == "__main__":
    main()
