"""The sender against a small receiver that behaves as fsutil's does."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from session_peer import Call, Peer, Serve

from lj_image.builders.docker.session.filesync import DIFF_COPY, FileSync, go_mode
from lj_image.builders.docker.session.messages import Packet
from lj_image.builders.docker.tree import Entry, Tree, tree
from lj_image.context import ContextFile

STAT, REQ, DATA, FIN, ERR = range(5)


class Receiver:
    def __init__(self, serve: Serve, trees: Mapping[str, Tree], mtime_s: int = 0) -> None:
        self.files = FileSync(trees, mtime_s)
        self.peer: Peer = serve({DIFF_COPY: self.files.diff_copy})
        self.taken = 0

    def open(self, name: str = "context", **patterns: Sequence[str]) -> Call:
        metadata = [("dir-name", name)]
        metadata += [(key.replace("_", "-"), text) for key, texts in patterns.items() for text in texts]
        self.taken = 0
        return self.peer.open(DIFF_COPY, metadata)

    def next(self, call: Call) -> object:
        self.peer.wait(lambda: len(call.messages()) > self.taken or call.ended)
        messages = call.messages()
        if len(messages) <= self.taken:
            return None
        self.taken += 1
        return Packet.FromString(messages[self.taken - 1])

    def stats(self, call: Call) -> list:
        found = []
        while (packet := self.next(call)) and packet.HasField("stat"):
            found.append(packet.stat)
        return found

    def request(self, call: Call, number: int) -> bytes:
        self.peer.send(call, Packet(type=REQ, id=number).SerializeToString())
        content = b""
        while packet := self.next(call):
            assert packet.type == DATA, packet.data
            assert packet.id == number
            if not packet.data:
                break
            content += packet.data
        return content

    def finish(self, call: Call) -> Call:
        self.peer.send(call, Packet(type=FIN).SerializeToString())
        assert self.next(call).type == FIN
        return self.peer.finish(call)

    def paths(self, **patterns: Sequence[str]) -> list[str]:
        call = self.open(**patterns)
        found = [stat.path for stat in self.stats(call)]
        assert self.finish(call).status == 0
        return found


def files(*paths: str) -> Tree:
    return tree(ContextFile(path, path.encode()) for path in paths)


def test_a_whole_transfer(serve: Serve, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(range(256)) * 2000)
    context = tree((ContextFile("w/big.whl", big), ContextFile("run.sh", b"#!", 0o755), ContextFile("empty", b"")))
    receiver = Receiver(serve, {"context": context})
    call = receiver.open()
    stats = receiver.stats(call)
    assert [(stat.path, stat.size, stat.mode) for stat in stats] == [
        ("empty", 0, 0o644),
        ("run.sh", 2, 0o755),
        ("w", 0, 0o755 | 1 << 31),
        ("w/big.whl", 512000, 0o644),
    ]
    assert {(stat.uid, stat.gid, stat.linkname) for stat in stats} == {(0, 0, "")}
    assert receiver.request(call, 3) == big.read_bytes()
    assert receiver.request(call, 1) == b"#!"
    assert receiver.request(call, 0) == b""
    assert receiver.finish(call).status == 0


def test_siblings_come_by_bytes_and_folders_before_their_members(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("a-b", "a/z", "a.b", "é", "Z", "a/b/c")})
    assert receiver.paths() == ["Z", "a", "a/b", "a/b/c", "a/z", "a-b", "a.b", "é"]


def test_times_are_the_epoch_with_a_fraction_that_tells_contents_apart(serve: Serve) -> None:
    times = []
    for content in (b"one", b"two", b"one"):
        receiver = Receiver(serve, {"context": tree([ContextFile("d/f", content)])}, 1700000000)
        call = receiver.open()
        times.append([stat.mod_time for stat in receiver.stats(call)])
        receiver.finish(call)
    assert times[0] == times[2] != times[1]
    assert [time // 10**9 for time in times[0] + times[1]] == [1700000000] * 4


def test_excluded_files_stay_here(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("a.py", "a.md", "d/x.md", "d/y", "ex/no", "ex/in/no", "ex/in/yes")})
    assert receiver.paths(exclude_patterns=["*.md", "ex", "!ex/in/yes"]) == [
        "a.py",
        "d",
        "d/x.md",
        "d/y",
        "ex",
        "ex/in",
        "ex/in/yes",
    ]


def test_only_sources_of_copy_are_sent_with_the_folders_above_them(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("wheels/a.whl", "wheels/b.txt", "rootfs/etc/x", "other")})
    assert receiver.paths(followpaths=["wheels/*.whl", "/rootfs", "absent"]) == [
        "rootfs",
        "rootfs/etc",
        "rootfs/etc/x",
        "wheels",
        "wheels/a.whl",
    ]
    assert len(receiver.paths(followpaths=["other", "."])) == 7
    assert receiver.paths(include_patterns=["other"]) == ["other"]


def test_values_that_newer_engines_encode_are_decoded(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("a b", "ä+", "c")})
    names = {"followpaths": ["a+b", "%C3%A4%2B"], "followpaths_encoded": ["1"]}
    assert receiver.paths(**names) == ["a b", "ä+"]


def test_a_folder_that_is_not_offered_is_not_found(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": ()})
    call = receiver.peer.finish(receiver.open("home"))
    assert call.status == 5


def test_an_empty_context_is_an_empty_list(serve: Serve) -> None:
    assert Receiver(serve, {"context": ()}).paths() == []


def test_a_file_that_vanished_before_the_list_is_named(serve: Serve, tmp_path: Path) -> None:
    receiver = Receiver(serve, {"context": tree([ContextFile("f", tmp_path / "gone")])})
    call = receiver.open()
    packet = receiver.next(call)
    assert packet.type == ERR
    assert str(tmp_path / "gone") in packet.data.decode()
    assert receiver.peer.finish(call).status == 2
    assert receiver.files.failure == packet.data.decode()


@pytest.mark.parametrize("change", ["vanish", "shrink", "grow"])
def test_a_file_that_changes_after_the_list_is_an_error_and_never_wrong_content(
    serve: Serve, tmp_path: Path, change: str
) -> None:
    store = tmp_path / "file"
    store.write_bytes(b"0123456789")
    receiver = Receiver(serve, {"context": tree([ContextFile("f", store)])})
    call = receiver.open()
    receiver.stats(call)
    {"vanish": store.unlink, "shrink": lambda: store.write_bytes(b"01"), "grow": lambda: store.write_bytes(bytes(20))}[
        change
    ]()
    receiver.peer.send(call, Packet(type=REQ, id=0).SerializeToString())
    receiver.peer.finish(call)
    last = Packet.FromString(call.messages()[-1])
    assert last.type == ERR
    assert str(store) in last.data.decode()
    assert call.status == 2


def test_a_request_for_what_is_no_file_is_refused(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("d/f")})
    call = receiver.open()
    receiver.stats(call)
    receiver.peer.send(call, Packet(type=REQ, id=0).SerializeToString())
    assert receiver.peer.finish(call).status == 2


def test_the_engines_own_error_ends_the_call(serve: Serve) -> None:
    receiver = Receiver(serve, {"context": files("f")})
    call = receiver.open()
    receiver.peer.send(call, Packet(type=ERR, data=b"disk full").SerializeToString())
    assert "disk full" in receiver.peer.finish(call).error


def test_memory_stays_flat_for_a_large_file(serve: Serve, tmp_path: Path) -> None:
    store = tmp_path / "large"
    with store.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    receiver = Receiver(serve, {"context": tree([ContextFile("f", store)])})
    call = receiver.open()
    receiver.stats(call)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    receiver.peer.send(call, Packet(type=REQ, id=0).SerializeToString())
    received = 0
    while received < 100 * 1024 * 1024:
        receiver.peer.receive()
        received += len(call.raw)
        call.raw.clear()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024, "KiB"


def test_special_bits_are_gos_and_not_unixs() -> None:
    # Go, io/fs: ModeSetuid 1<<23, ModeSetgid 1<<22, ModeSticky 1<<20, ModeDir 1<<31
    assert go_mode(Entry("f", 0o4755, b"")) == 0o755 | 1 << 23
    assert go_mode(Entry("f", 0o2755, b"")) == 0o755 | 1 << 22
    assert go_mode(Entry("d", 0o1777)) == 0o777 | 1 << 20 | 1 << 31
