"""What the families of `tests/families` take from elsewhere."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any, Final
from urllib.parse import quote

from samples.zips import FILE, LINK, packed
from standins.commands import Project
from standins.vendor import offer
from unit.lock.loopback import Loopback

TOKEN: Final = "correct-horse/battery+staple"
KIT_ARCHIVE: Final = "kit 1.2.3 é.tar.gz"
KIT_ZIP: Final = "kit 1.2.3 é.zip"
KIT_FILES: Final = (
    ("kit-1.2.3/lib/libkit.so", b"no library, but its place\n", 0o755),
    ("kit-1.2.3/share/mode d'emploi – 説明.txt", b"Lire d'abord.\n", 0o640),
)
KIT_LINK: Final = ("kit-1.2.3/lib/libkit.so.1", "libkit.so")


def index() -> Loopback:
    """Return an index with `tool` in two versions, and what it requires."""
    found = Loopback()
    offer(found, "tool", "1.0", "helper>=2")
    offer(found, "tool", "1.1", "helper>=2")
    offer(found, "helper", "2.0", payload=b"helper's payload\n" * 500)
    return found


def kits() -> Loopback:
    """Return the server of the archives."""
    return Loopback(archives={quote(KIT_ARCHIVE): _kit(), quote(KIT_ZIP): _zipped_kit()})


def _zipped_kit() -> bytes:
    files = ((path, content, FILE | mode) for path, content, mode in KIT_FILES)
    return packed(*files, (KIT_LINK[0], KIT_LINK[1].encode(), LINK | 0o777))


def _kit() -> bytes:
    spool = io.BytesIO()
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content, mode in KIT_FILES:
            member = tarfile.TarInfo(path)
            member.size, member.mode, member.uid, member.gid = len(content), mode, 1234, 5678
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo(KIT_LINK[0])
        link.type, link.linkname = tarfile.SYMTYPE, KIT_LINK[1]
        tar.addfile(link)
    return gzip.compress(spool.getvalue(), mtime=0)


def settings(packages: Loopback, archives: Loopback, **more: Any) -> dict[str, Any]:
    """Return a config for these families."""
    return {
        "indexes": {"pypi": {"url": packages.simple}},
        "archives": {"kits": {"url": f"{archives.url}/archives"}},
        "secrets": {"token": {"env": "EVERY_KIND_TOKEN"}},
        "build": {"network": "host"},
        **more,
    }


def configure(project: Project, packages: Loopback, archives: Loopback, **more: Any) -> None:
    """Write that config, and put the secret where it says."""
    project.env["EVERY_KIND_TOKEN"] = TOKEN
    project.configure(settings(packages, archives, **more))
