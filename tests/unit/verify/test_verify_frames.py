from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lj_image.verify.frames import HEADER, STDERR, STDOUT, Demultiplexer, Reply

PIECES = st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=50)))


@given(PIECES, st.integers(1, 40))
def test_frames_come_out_whole_however_the_stream_is_cut(pieces: list[tuple[int, bytes]], step: int) -> None:
    stream = b"".join(HEADER.pack(kind, len(content)) + content for kind, content in pieces)
    frames = Demultiplexer()
    found = {STDOUT: b"", STDERR: b""}
    for at in range(0, len(stream), step):
        for kind, content in frames.feed(stream[at : at + step]):
            found[kind] += content
    assert found == {kind: b"".join(c for k, c in pieces if k == kind) for kind in (STDOUT, STDERR)}


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 255), st.integers(1, 30))
def test_a_reply_ends_at_the_token_however_it_is_cut(out: bytes, err: bytes, code: int, step: int) -> None:
    reply = Reply("t0ken" * 5)
    printed = out + f"{reply.token}:{code};".encode()
    for at in range(0, len(printed), step):
        assert not reply.complete()
        reply.add(STDOUT, printed[at : at + step])
    reply.add(STDERR, err + f"{reply.token};".encode())
    assert reply.complete()
    output = reply.output()
    assert (output.exit_code, output.stdout, output.stderr) == (code, out, err)


def test_a_stream_that_nobody_knows_is_ignored() -> None:
    reply = Reply("t")
    reply.add(3, b"system error")
    assert not reply.complete()
