"""Publishing: our command against `docker push`, skopeo and crane, with a registry process for each region on loopback.

See README.md for each figure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench.measure import Figure, Skipped, in_turn, ours_by, times_faster
from bench.peers import ROOT, Store, engine
from bench.project import MIB, TAG
from bench.publisher import Publisher
from bench.registries import Registries, faulty, registries, report, slowed
from bench.senders import Docker, side_by_side

REGIONS: Final = 6
MEMORY_MIB: Final = 200
REPUSH_SECONDS: Final = 0.5
_FOLDER: Final = ROOT / "build/bench/push"
_ENGINES: Final[Mapping[str, Store]] = {"docker_push": "containerd", "docker_push_classic": "classic"}
_REGISTRIES_BYTES: Final = 8 * 1024**3
"""What all registries together hold at most, and as much again."""


@dataclass(frozen=True)
class Sizes:
    """What is published, in MiB by layer, and how often."""

    image: tuple[int, ...] = (256, 192, 128, 96, 64, 32)
    distant: tuple[int, ...] = (96, 64, 32, 32, 16)
    """Published to registries that take only so much in a second."""
    layer: int = 1024
    """One layer, whose upload is cut."""
    rate: float = 20e6
    """Bytes per second and registry."""
    rounds: int = 3
    slow_rounds: int = 2


QUICK: Final = Sizes((6, 4, 2), (4, 2), 8, 4e6, 1, 1)
"""Shows that everything runs; the figures mean nothing."""


def figures(*, quick: bool = False) -> Iterator[Figure]:
    """Yield the figures of publishing; a peer that is not installed is skipped by name."""
    sizes = QUICK if quick else Sizes()
    try:
        with registries(_in_memory(_FOLDER / "registries"), REGIONS) as places:
            yield from _unlimited(sizes, places)
            yield from _distant(sizes, places)
            yield from _resumed(sizes, places)
    finally:
        shutil.rmtree(_FOLDER, ignore_errors=True)


def _unlimited(sizes: Sizes, places: Registries) -> Iterator[Figure]:
    ours = Publisher(_FOLDER / "image", sizes.image, REGIONS)
    ours.point_to(places.ports)
    size = ours.size_bytes()
    words = f"{size / MIB:,.0f} MiB in {len(sizes.image)} layers to {REGIONS} empty registries"
    peaks: list[float] = []
    cpu: list[float] = []

    def push() -> float:
        before = os.times()
        done = ours.push().run
        after = os.times()
        cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        peaks.append(done.peak_mib)
        return done.seconds

    sides: dict[str, Callable[[], float]] = {
        "ours": push,
        **side_by_side(ours.layout, f"published:{TAG}", places.ports),
    }
    with ExitStack() as exits:
        for name, docker in _dockers(exits, ours.layout).items():
            sides[name] = partial(docker.push, places.ports)
        times = _in_turn_emptied(sides, places, sizes.rounds)
    for name, store in _ENGINES.items():
        if name in times:
            note = f"{words}; one docker push after the other, from the {store} store"
            yield times_faster(f"vs_{name}", name, times, 4, note)
    for peer_name in ("skopeo", "crane"):
        if peer_name in times:
            yield times_faster(f"vs_{peer_name}", peer_name, times, 1.5, f"{words}; six of {peer_name} side by side")
    yield _memory(peaks, words)
    yield ours_by(
        "cpu_vs_sha256", "sha256", {"ours": cpu, "sha256": [_hashing(ours)]}, None, f"CPU of the command; {words}"
    )
    places.empty()
    ours.push()
    yield from _again(ours, sizes, places)


def _dockers(exits: ExitStack, layout: Path) -> dict[str, Docker]:
    """Return an engine of each kind that is here, with the image; they end with `exits`."""
    found: dict[str, Docker] = {}
    for name, store in _ENGINES.items():
        try:
            peer = exits.enter_context(engine(_FOLDER / f"{store}.sock", store))
            found[name] = exits.enter_context(Docker.loaded(peer, layout, f"published:{TAG}"))
        except Skipped as reason:
            print(f"skipped: {name} ({reason})")
    return found


def _again(ours: Publisher, sizes: Sizes, places: Registries) -> Iterator[Figure]:
    """Push what is there already, then what differs in one component."""
    size = ours.size_bytes()
    with faulty(places.ports[0]) as port:
        ours.point_to([port, *places.ports[1:]])
        seconds = in_turn({"ours": lambda: ours.push_again(1).run.seconds}, 2 * sizes.rounds + 1)["ours"]
        again = float(report(port)["blob_bytes_received"])
        yield Figure("repush_bytes", again / size, {"ours": again, "release": float(size)}, 0, "blob bytes, unchanged")
        sides = {"ours": seconds, "mark": [REPUSH_SECONDS]}
        yield ours_by("repush_seconds", "mark", sides, 1.0, "one registry, unchanged: the command against 0.5 s")
        before = ours.layers()
        ours.change(2, sizes.image[2])
        ours.build()
        changed = float(sum(bytes_ for digest, bytes_ in ours.layers().items() if digest not in before))
        ours.push_again(1, force=True)
        sent = float(report(port)["blob_bytes_received"]) - again
        yield Figure("changed_bytes", sent / changed, {"ours": sent, "layers": changed}, 1.01, "one component changed")


def _distant(sizes: Sizes, places: Registries) -> Iterator[Figure]:
    ours = Publisher(_FOLDER / "distant", sizes.distant, REGIONS)
    words = f"{ours.size_bytes() / MIB:,.0f} MiB, each registry takes {sizes.rate / 1e6:,.0f} MB/s"
    with slowed(places.ports, [sizes.rate] * REGIONS) as ports:
        ours.point_to(ports)
        sides = {"ours": lambda: ours.push().run.seconds, "one": lambda: ours.push(1).run.seconds}
        times = _in_turn_emptied(sides, places, sizes.slow_rounds)
        yield ours_by("six_vs_one", "one", times, 1.3, f"{words}; {REGIONS} registries against one")
    with slowed(places.ports, [sizes.rate] * (REGIONS - 1) + [sizes.rate / 100]) as ports:
        ours.point_to(ports)
        sides = {
            "ours": lambda: ours.push_until(places.ports[:-1], REGIONS),
            "five": lambda: ours.push_until(places.ports[:-1], REGIONS - 1),
        }
        times = _in_turn_emptied(sides, places, sizes.slow_rounds)
        note = f"{words}, and the sixth 1 % of it; until the other five have the tag"
        yield ours_by("slow_region_delay", "five", times, 1.05, note)


def _resumed(sizes: Sizes, places: Registries) -> Iterator[Figure]:
    ours = Publisher(_FOLDER / "layer", (sizes.layer,), 1)
    size = max(ours.layers().values())
    for name, cut_after in (("resume_bytes", 0.99 * size), ("resume_bytes_killed", float("inf"))):
        places.empty()
        with (
            faulty(places.ports[0], "--resumable", "--fault", "relative-location") as counting,
            slowed([counting], [float("inf")], cut_after) as ports,
        ):
            ours.point_to(ports)
            if name == "resume_bytes":
                ours.push()
            else:
                ours.push_killed(partial(_has_received, counting, 0.97 * size))
                ours.push_again()
            sent = float(report(counting)["blob_bytes_received"])
        again = sent - ours.size_bytes()
        what = "the connection cut at 99 %" if name == "resume_bytes" else "kill -9 at 97 %, then the same command"
        note = f"one layer of {size / MIB:,.0f} MiB, {what}; bytes that went out twice"
        yield Figure(name, max(again, 0.0) / size, {"ours": again, "layer": float(size)}, 0.02, note)


def _in_memory(folder: Path) -> Path:
    """Return a folder in memory where there is one with room, else the one given: a disk would slow all sides alike."""
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > _REGISTRIES_BYTES:
        return memory / "lj-image-bench-registries"
    return folder


def _in_turn_emptied(
    sides: Mapping[str, Callable[[], float]], places: Registries, rounds: int
) -> dict[str, list[float]]:
    def emptied(side: Callable[[], float]) -> float:
        places.empty()
        os.sync()
        return side()

    return in_turn({name: partial(emptied, side) for name, side in sides.items()}, rounds)


def _has_received(port: int, size_bytes: float) -> bool:
    return report(port)["blob_bytes_received"] >= size_bytes


def _memory(peaks: Sequence[float], words: str) -> Figure:
    sides = {"ours": [max(peaks)], "mark": [float(MEMORY_MIB)]}
    return ours_by("memory_mib", "mark", sides, 1.0, f"{words}: peak, against 200 MiB")


def _hashing(ours: Publisher) -> float:
    """Return the seconds of one SHA-256 over all layers."""
    started = time.process_time()
    for digest in ours.layers():
        with ours.blob(digest).open("rb") as blob:
            hashlib.file_digest(blob, "sha256")
    return time.process_time() - started
