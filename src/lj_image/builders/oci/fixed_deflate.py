"""Deflates tar headers without a compressor, so that no library's version, build or processor decides about the bytes.

Between the files of a layer stand headers and paddings: ASCII among runs of zeros. The fixed Huffman code of deflate
(RFC 1951 §3.2.6) gives a byte below 144 eight bits, so that a text is one table look-up; a run of zeros is one zero
and a few matches at distance 1. That is within a fifth of what zlib makes of the same bytes, and as fast.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from lj_image.builders.oci.tar_headers import BLOCK_BYTES, FILE_TAIL, NAME_BYTES

_NINE_BITS_FROM: Final = 144
"""Larger literals have nine bits."""
_FINAL_FIXED: Final = 0b011
"""The first bits of a block: BFINAL, then BTYPE 01, both from the lowest on (RFC 1951 §3.2.3)."""
_PADDINGS: Final = tuple(map(bytes, range(BLOCK_BYTES)))
_LARGEST_STORED: Final = 0xFFFF
_LONGEST_MATCH: Final = 258
_ZEROS: Final = re.compile(rb"\0{4,}")
_SHORT: Final = re.compile(rb"[\x00-\x8f]+")
# RFC 1951 §3.2.5: length codes 257 to 284 as (least length, extra bits); 285 is 258 alone.
_LENGTHS: Final = tuple(
    (least, extra)
    for extra, group in ((0, range(3, 11)), (1, range(11, 19, 2)), (2, range(19, 35, 4)), (3, range(35, 67, 8)))
    for least in group
) + tuple((least, extra) for extra, group in ((4, range(67, 131, 16)), (5, range(131, 258, 32))) for least in group)

Bits = tuple[int, int]
"""A value and how many bits it has; the first bit of the stream is the lowest."""


def deflated(plain: bytes) -> bytes:
    """Return a raw deflate stream of `plain`, one final block of fixed Huffman codes."""
    padding = len(plain) - BLOCK_BYTES
    if 0 <= padding < BLOCK_BYTES and plain.endswith(FILE_TAIL) and plain.startswith(_PADDINGS[padding]):
        return _padding_and_header(padding, plain[padding : -len(FILE_TAIL)])
    return _general(plain)


def _general(plain: bytes) -> bytes:
    value, length, at = _FINAL_FIXED, 3, 0
    body = plain.removesuffix(FILE_TAIL)
    for run in _ZEROS.finditer(body):
        start, end = run.span()
        if start > at:
            value, length = _with_literals(value, length, body[at:start])
        zeros, bits = _zeros(end - start)
        value |= zeros << length
        length += bits
        at = end
    if at < len(body):
        value, length = _with_literals(value, length, body[at:])
    if len(body) < len(plain):
        value |= _FILE_TAIL_BITS[0] << length
        length += _FILE_TAIL_BITS[1]
    return value.to_bytes((length + 7 + 7) // 8, "little")  # end of block is seven zero bits


def _padding_and_header(padding: int, start: bytes) -> bytes:
    """Return what `deflated` would of zeros and one header; nearly all of a layer's members between files are that.

    `start` is the header up to its type: the name, filled up with zeros, then digits.
    """
    if not start.isascii():
        return _general(bytes(padding) + start + FILE_TAIL)
    name = start[:NAME_BYTES].rstrip(b"\0")
    zeros, length = _zeros(padding)
    value, length = _FINAL_FIXED | zeros << 3, length + 3
    value |= int.from_bytes(name.translate(_EIGHT_BITS), "little") << length
    length += 8 * len(name)
    zeros, bits = _zeros(NAME_BYTES - len(name))
    value |= zeros << length
    length += bits
    digits = start[NAME_BYTES:]
    value |= int.from_bytes(digits.translate(_EIGHT_BITS), "little") << length
    length += 8 * len(digits)
    value |= _FILE_TAIL_BITS[0] << length
    return value.to_bytes((length + _FILE_TAIL_BITS[1] + 7 + 7) // 8, "little")


def stored(plain: bytes) -> bytes:
    """Return a raw deflate stream of `plain` as it is, in blocks that are not compressed (RFC 1951 §3.2.4)."""
    blocks = [plain[at : at + _LARGEST_STORED] for at in range(0, len(plain), _LARGEST_STORED)] or [b""]
    last = len(blocks) - 1
    return b"".join(stored_header(len(block), final=number == last) + block for number, block in enumerate(blocks))


def stored_header(size: int, *, final: bool) -> bytes:
    """Return what stands before `size` (at most 65535) stored bytes."""
    return bytes((final,)) + size.to_bytes(2, "little") + (size ^ _LARGEST_STORED).to_bytes(2, "little")


def _with_literals(value: int, length: int, text: bytes) -> Bits:
    if text.isascii():
        return value | int.from_bytes(text.translate(_EIGHT_BITS), "little") << length, length + 8 * len(text)
    at = 0
    while at < len(text):
        if text[at] >= _NINE_BITS_FROM:
            value |= _reversed(0b110010000 + text[at] - _NINE_BITS_FROM, 9) << length
            length += 9
            at += 1
            continue
        short = _SHORT.match(text, at)
        assert short is not None
        value |= int.from_bytes(short.group().translate(_EIGHT_BITS), "little") << length
        length += 8 * len(short.group())
        at = short.end()
    return value, length


@lru_cache(maxsize=2048)
def _zeros(count: int) -> Bits:
    """Return a run of zeros: one literal, then matches of what stands one byte back; a few are literals."""
    if count < 4:
        return int.from_bytes(bytes(count).translate(_EIGHT_BITS), "little"), 8 * count
    value, length, left = _EIGHT_BITS[0], 8, count - 1
    while left:
        match = min(left, _LONGEST_MATCH)
        if 0 < left - match < 3:  # a match has three bytes at least
            match = left - 3
        piece, bits = _match(match)
        value |= piece << length
        length += bits
        left -= match
    return value, length


def _match(size: int) -> Bits:
    """Return the codes of a match of `size` bytes at distance 1, whose distance code is five zero bits."""
    if size == _LONGEST_MATCH:
        return _reversed(0b11000101, 8), 8 + 5
    index = max(number for number, (least, _) in enumerate(_LENGTHS) if least <= size)
    least, extra = _LENGTHS[index]
    code, bits = (_reversed(1 + index, 7), 7) if index < 23 else (_reversed(0b11000000 + index - 23, 8), 8)
    return code | (size - least) << bits, bits + extra + 5


def _reversed(code: int, bits: int) -> int:
    """Return a Huffman code as the stream has it, the highest bit first."""
    return int(f"{code:0{bits}b}"[::-1], 2)


_EIGHT_BITS: Final = bytes(_reversed(0b00110000 + byte, 8) if byte < _NINE_BITS_FROM else 0 for byte in range(256))


def _bits_of_file_tail() -> Bits:
    value, length, at = 0, 0, 0
    for run in _ZEROS.finditer(FILE_TAIL):
        value, length = _with_literals(value, length, FILE_TAIL[at : run.start()])
        zeros, bits = _zeros(run.end() - run.start())
        value |= zeros << length
        length += bits
        at = run.end()
    return value, length


_FILE_TAIL_BITS: Final = _bits_of_file_tail()
