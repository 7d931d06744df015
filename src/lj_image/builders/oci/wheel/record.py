"""RECORD: what a wheel promises of its files, and what an installation writes down of them.

Format: https://packaging.python.org/specifications/recording-installed-packages/#the-record-file
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
from collections.abc import Iterable
from typing import Final, NamedTuple

from lj_image.builders.oci.wheel.wheel import Wheel

_SHA256_TEXT_BYTES: Final = 43
"""Of 32 bytes in base 64 without padding."""


class Row(NamedTuple):
    """One file: its path, hash and size as they are written.

    A tuple, since an image has tens of thousands: that is what the csv module takes, and what sorts by itself.
    """

    path: str
    hash: str = ""
    size: str = ""

    @classmethod
    def of(cls, path: str, content: bytes) -> Row:
        """Describe bytes."""
        return cls(
            path,
            f"sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')}",
            str(len(content)),
        )

    def sha256(self, wheel: Wheel, member: str) -> bytes:
        """Return the promised digest; raises BuildError for none, and for a kind that proves nothing or is unknown."""
        algorithm, _, text = self.hash.partition("=")
        if algorithm != "sha256":
            weak = f"RECORD has {algorithm} of it, and sha256 is needed" if algorithm else "RECORD has no hash of it"
            raise wheel.fault(member, weak)
        try:
            plain = text.replace("-", "+").replace("_", "/") + "="
            digest = binascii.a2b_base64(plain, strict_mode=True) if len(text) == _SHA256_TEXT_BYTES else b""
        except ValueError:
            digest = b""
        if not digest:
            raise wheel.fault(member, f"RECORD has no SHA-256 of it but {self.hash[:80]!r}")
        return digest


def parse(wheel: Wheel, member: str, content: bytes) -> dict[str, Row]:
    """Return the rows by path; raises BuildError for what is no such table, or says two things of a file."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise wheel.fault(member, "it is not UTF-8") from None
    rows: dict[str, Row] = {}
    for number, columns in enumerate(csv.reader(text.splitlines()), start=1):
        if not columns:
            continue
        if len(columns) not in (2, 3):
            raise wheel.fault(member, f"line {number} has {len(columns)} columns, not three")
        row = Row(*columns)
        if rows.setdefault(row.path, row) != row:
            raise wheel.fault(row.path, "RECORD says two things of it")
    return rows


def written(rows: Iterable[Row]) -> bytes:
    """Return the file as pip writes it: sorted, and with the line ends of Python's csv module (RFC 4180)."""
    ordered = sorted(rows)
    text = "".join([f"{path},{digest},{size}\r\n" for path, digest, size in ordered])
    if '"' not in text and text.count(",") == 2 * len(ordered) and len(text.split()) == len(ordered):
        return text.encode()  # nothing to quote, as in nearly every wheel, and many times faster
    target = io.StringIO(newline="")
    csv.writer(target).writerows(ordered)
    return target.getvalue().encode()
