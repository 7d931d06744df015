"""Headers are held against those that Python's own tarfile writes, and what it reads from them."""

from __future__ import annotations

import io
import tarfile

import pytest

from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Symlink, Written
from lj_image.builders.oci.tar_headers import END, header, padding

TIME = 1_700_000_000
LONG = "usr/local/lib/python3.11/dist-packages/" + "/".join(["deep"] * 30) + "/module.py"
NAMES = ("etc/x", "a" * 100, LONG, "x" * 300, "usr/share/doc/größe.txt", "a/" + "é" * 200)


def read(entry: Entry) -> tarfile.TarInfo:
    content = entry.content.content if isinstance(entry, File) and isinstance(entry.content, Written) else b""
    with tarfile.open(fileobj=io.BytesIO(header(entry) + content + padding(len(content)) + END)) as tar:
        return tar.getmembers()[0]


@pytest.mark.parametrize("path", NAMES)
def test_tarfile_reads_what_a_file_is(path: str) -> None:
    found = read(File(path, 0o755, TIME, Written(b"abc")))
    assert (found.name, found.mode, found.mtime, found.size, found.isreg()) == (path, 0o755, TIME, 3, True)
    assert (found.uid, found.gid, found.uname, found.gname) == (0, 0, "", "")


@pytest.mark.parametrize("path", NAMES)
def test_tarfile_reads_a_folder_a_link_and_a_hard_link(path: str) -> None:
    folder, link, hard = (
        read(Folder(path, 0o2775, TIME, uid=0, gid=50)),
        read(Symlink(path, path, TIME)),
        read(HardLink(path, path, 0o644, TIME)),
    )
    assert (folder.name, folder.isdir(), folder.mode, folder.gid) == (path, True, 0o2775, 50)
    assert (link.name, link.issym(), link.linkname) == (path, True, path)
    assert (hard.name, hard.islnk(), hard.linkname) == (path, True, path)


def test_a_short_name_gives_the_very_bytes_that_tarfile_writes() -> None:
    expected = tarfile.TarInfo("usr/bin/ray")
    expected.size, expected.mode, expected.mtime = 3, 0o755, TIME
    entry = File("usr/bin/ray", 0o755, TIME, Written(b"abc"))
    assert header(entry) == expected.tobuf(tarfile.PAX_FORMAT)


def test_a_file_larger_than_octal_digits_can_say_gets_a_pax_header() -> None:
    class Huge(Written):
        @property
        def size_bytes(self) -> int:
            return 9 * 1024**3

    found = tarfile.TarFile.open(fileobj=io.BytesIO(header(File("x", 0o644, TIME, Huge(b"")))), errorlevel=0).next()
    assert found is not None
    assert found.size == 9 * 1024**3
