from __future__ import annotations

import requests
from urllib3 import HTTPResponse

from lj_image.builders.docker.json_stream import objects


def response(*chunks: bytes) -> requests.Response:
    class Raw(HTTPResponse):
        def stream(self, *_: object, **__: object):  # type: ignore[no-untyped-def]
            yield from chunks

    found = requests.Response()
    found.raw = Raw()
    return found


def test_objects_may_be_cut_anywhere_and_share_a_chunk() -> None:
    chunks = (b'{"a":', b'1}\r\n{"b":2}\n{', b'"c":"', "ä".encode()[:1], "ä".encode()[1:] + b'"}')
    assert list(objects(response(*chunks))) == [{"a": 1}, {"b": 2}, {"c": "ä"}]


def test_silence_is_no_object() -> None:
    assert list(objects(response(b"\r\n", b""))) == []
