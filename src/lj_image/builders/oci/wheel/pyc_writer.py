"""Compiles sources in a Python of the image's version, which need not be ours: 3.8 or newer, its standard library only.

Run as `python -c TEXT-OF-THIS-FILE`, so nothing is imported from lj_image. It says which Python it is; then, for each
pair of frames on its input, the path in the image and the source, it answers one: the compiled file, or nothing where
the source does not compile. A frame is four bytes of length, big endian, and so many bytes.
"""

from __future__ import annotations

import importlib.util
import marshal
import sys
from types import CodeType
from typing import IO

UNCHECKED_HASH = 0b01
"""PEP 552: the file is valid by the source's hash, and nobody compares it."""


def main(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer until the input ends."""
    _write(target, str(sys.implementation.cache_tag).encode())
    while (path := read_frame(source)) is not None:
        _write(target, compiled(read_frame(source) or b"", path.decode()))


def compiled(source: bytes, path: str) -> bytes:
    """Return the compiled file of a source; nothing where it has a fault, as pip leaves it out then."""
    try:
        code = compile(source, path, "exec", dont_inherit=True, optimize=-1)
    except Exception:  # a syntax error, an encoding, a nesting: what compileall passes over, too
        return b""
    return b"".join(
        (
            importlib.util.MAGIC_NUMBER,
            UNCHECKED_HASH.to_bytes(4, "little"),
            importlib.util.source_hash(source),
            dumped(code),
        )
    )


def dumped(code: CodeType) -> bytes:
    """Return a code object in bytes that depend on nothing but itself.

    marshal marks each object that something else refers to, whoever that is: a name that another module happens to
    use as well would be marked in one process and not in the next. With one more reference to each, each is marked.
    """
    more = _parts(code)
    plain = marshal.dumps(code)
    del more
    return plain


def read_frame(source: IO[bytes]) -> bytes | None:
    """Read a frame; None where the input has ended."""
    length = source.read(4)
    return source.read(int.from_bytes(length, "big")) if len(length) == 4 else None


def _parts(part: object) -> list[object]:
    """Return all that a code object is made of, down to the last string."""
    found = [part]
    if isinstance(part, CodeType):
        names = (part.co_names, part.co_varnames, part.co_freevars, part.co_cellvars)
        for inner in (*names, part.co_consts, part.co_filename, part.co_name, getattr(part, "co_qualname", "")):
            found += _parts(inner)
    elif isinstance(part, (tuple, frozenset)):
        for inner in part:
            found += _parts(inner)
    elif isinstance(part, slice):  # a constant since Python 3.14
        found += [part.start, part.stop, part.step]
    return found


def _write(target: IO[bytes], content: bytes) -> None:
    target.write(len(content).to_bytes(4, "big") + content)
    target.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
