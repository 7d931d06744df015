"""Run a command with a folder as the root of a mount namespace of its own: pivot.py FOLDER COMMAND...

`pivot.py --at-root` ends with 0 where that is so already.

chroot would not do for an engine: the namespace's root would stay the machine's, and there is where `docker exec`
would end, outside of the container. Works below a plain chroot, too, where `/` is no mount point.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

CLONE_NEWNS = 0x20000  # linux/sched.h
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000  # linux/mount.h
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[platform.machine()]  # has no wrapper in libc

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of libc that returns 0 when all is well."""
    if getattr(libc, name)(*arguments):
        raise SystemExit(f"pivot: {name}{arguments}: {os.strerror(ctypes.get_errno())}")


def enter(folder: str) -> None:
    """Make the folder, with all that is mounted below it, this process's root, in a new mount namespace."""
    os.chdir(folder)
    call("unshare", CLONE_NEWNS)
    new_root = os.open(".", os.O_PATH | os.O_DIRECTORY)  # after that, for it is another mount now
    # Entering the namespace again leads to its own root, out of a chroot: only that root can be exchanged.
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    call("setns", namespace, CLONE_NEWNS)
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)  # before any other: none is seen outside
    os.fchdir(new_root)
    path = bytes(Path.cwd())
    call("mount", path, path, None, MS_BIND | MS_REC, None)
    os.chdir(path)
    call("syscall", SYS_PIVOT_ROOT, b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    os.close(namespace)
    os.close(new_root)


def at_namespace_root() -> bool:
    """Say whether this process's root is that of its mount namespace; a chroot is not, even one on a mount point."""
    before = Path("/").stat()
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    if libc.setns(namespace, CLONE_NEWNS):  # enters the namespace anew, at its own root
        return True
    return os.path.samestat(before, Path("/").stat())


if __name__ == "__main__":
    if sys.argv[1:] == ["--at-root"]:
        sys.exit(0 if at_namespace_root() else 1)
    enter(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
