"""Expected bytes are written down by hand from protobuf's encoding rules, not made by the code under test."""

from __future__ import annotations

import pytest

from lj_image.builders.docker.session import messages


def test_a_stat_packet_has_the_bytes_that_fsutil_reads() -> None:
    stat = messages.Stat(path="a", mode=0o644, size=5, mod_time=1)
    packet = messages.Packet(type=0, stat=stat)
    # Packet.stat is field 2 (0x12). Stat: path=1 (0x0a), mode=2 (0x10), size=5 (0x28), modTime=6 (0x30).
    assert packet.SerializeToString() == b"\x12\x0a" + b"\x0a\x01a" + b"\x10\xa4\x03" + b"\x28\x05" + b"\x30\x01"


def test_a_directory_mode_is_an_unsigned_number_of_32_bits() -> None:
    stat = messages.Stat(mode=(1 << 31) | 0o755)
    assert stat.SerializeToString() == b"\x10\xed\x83\x80\x80\x08"


def test_the_end_of_a_list_is_an_empty_message() -> None:
    assert messages.Packet(type=0).SerializeToString() == b""


def test_a_data_packet_carries_id_and_bytes() -> None:
    assert messages.Packet(type=2, id=300, data=b"hi").SerializeToString() == b"\x08\x02\x18\xac\x02\x22\x02hi"


def test_healthy_is_serving() -> None:
    assert messages.HealthCheckResponse(status=1).SerializeToString() == b"\x08\x01"


def test_maps_are_repeated_entries_of_key_and_value() -> None:
    stat = messages.Stat(path="f", xattrs={"user.k": b"v"})
    assert stat.SerializeToString() == b"\x0a\x01f" + b"\x52\x0b" + b"\x0a\x06user.k" + b"\x12\x01v"


def test_a_status_is_read_with_its_nested_times() -> None:
    vertex = b"\x0a\x01d" + b"\x1a\x03RUN" + b"\x20\x01" + b"\x2a\x04\x08\x0a\x10\x05" + b"\x3a\x04oops"
    status = messages.StatusResponse.FromString(b"\x0a" + bytes([len(vertex)]) + vertex)
    (found,) = status.vertexes
    assert (found.digest, found.name, found.cached, found.error) == ("d", "RUN", True, "oops")
    assert (found.started.seconds, found.started.nanos) == (10, 5)
    assert not found.HasField("completed")


def test_fields_of_newer_engines_are_skipped() -> None:
    assert messages.GetSecretRequest.FromString(b"\x0a\x03tok" + b"\xfa\x01\x03new").id == "tok"


@pytest.mark.parametrize("name", messages.TABLE)
def test_every_message_of_the_table_can_be_made(name: str) -> None:
    assert messages._CLASSES[name]().SerializeToString() == b""
