from __future__ import annotations

import threading

import pytest
import requests
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from lj_image.builders.docker.answer import Answer
from lj_image.errors import EngineError


def answer(*chunks: bytes | Exception) -> Answer:
    class Raw(HTTPResponse):
        def stream(self, *_: object, **__: object):  # type: ignore[no-untyped-def]
            for chunk in chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk

    response = requests.Response()
    response.raw = Raw()
    return Answer(response)


def test_objects_may_be_cut_anywhere_and_share_a_chunk() -> None:
    chunks = (b'{"a":', b'1}\r\n{"b":2}\n{', b'"c":"', "ä".encode()[:1], "ä".encode()[1:] + b'"}')
    assert list(answer(*chunks).objects()) == [{"a": 1}, {"b": 2}, {"c": "ä"}]


def test_silence_is_no_object() -> None:
    assert list(answer(b"\r\n", b"").objects()) == []


def test_a_connection_that_breaks_gives_what_came_before_it_and_then_an_engine_that_is_gone() -> None:
    objects = answer(b'{"a":1}\n', ProtocolError("Connection broken")).objects()
    assert next(objects) == {"a": 1}
    with pytest.raises(EngineError, match="went away"):
        next(objects)


def test_closing_leaves_no_thread() -> None:
    before = threading.active_count()
    answer(b"{}\n").close()
    assert threading.active_count() == before
