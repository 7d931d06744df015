"""The oci builder against pip's and uv's Dockerfiles on a current engine, and against the limit of the work.

Two stacks of 25.02-open: a part (Transformers, Ray and all they need) and the whole. See README.md for each figure.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.assembler import Assembler, Built, bumped_project, wheel_sizes, workplace
from bench.limit import Wheel, pass_all, wheels_below
from bench.measure import Figure, Skipped, in_turn, ours_by, times_faster
from bench.peers import ROOT, Context, Engine, Peers, Store, engine, room_for

MEMORY_MIB: Final = 200
REBUILD_SECONDS: Final = 2.0
WARM_SECONDS: Final = 1.0
STORES: Final[tuple[Store, ...]] = ("containerd", "classic")
"""Of the engines; the first is the peer, the second is told beside it."""


@dataclass(frozen=True)
class Stacks:
    """What is assembled, and how often."""

    part: str
    whole: str
    """Components; none for all."""
    bump: str
    """The version of one component that is set anew."""
    part_rounds: int = 5
    peer_rounds: int = 1
    whole_rounds: int = 2
    rebuild_rounds: int = 5


FULL: Final = Stacks(part="transformers,ray", whole="", bump="transformers=4.48.2")
QUICK: Final = Stacks("accelerate", "accelerate", "accelerate=1.2.1", 1, 1, 1, 1)
"""Shows that everything runs; the figures mean nothing."""


def figures(*, quick: bool = False) -> Iterator[Figure]:
    """Yield the figures of the oci builder; a peer that is not installed is skipped by name."""
    stacks = QUICK if quick else FULL
    with workplace() as folder, ExitStack() as exits:
        engines: list[Engine] = []
        try:
            for store in STORES:
                engines.append(exits.enter_context(engine(ROOT / f"build/bench/{store}.sock", store)))
            print(f"peers: {engines[0].words}")
        except Skipped as reason:
            _skip("oci_vs_pip, oci_vs_uv, oci_full_vs_uv, rebuild_vs_uv", reason)
        part = _measured_part(stacks, folder, engines)
        yield from _part_figures(part, engines)
        yield from _whole(stacks, folder, engines, part)


@dataclass(frozen=True)
class _Part:
    """What was measured of the part."""

    words: str
    times: Mapping[str, list[float]]
    warm: list[float]

    def faster_uv(self, store: Store) -> str:
        """Return which of uv's Dockerfiles is the faster in a store: one step, or one for each layer."""
        return min(f"uv_{store}", f"uv_layered_{store}", key=lambda side: statistics.median(self.times[side]))


def _measured_part(stacks: Stacks, folder: Path, engines: Sequence[Engine]) -> _Part:
    ours = Assembler(folder, ROOT, stacks.part)
    ours.build()  # the base, and what is read once, ever
    rendered = ours.render(folder / "rendered")
    sides = _alone(ours, rendered, folder) | {"here": ours.cold_here}
    rounds = stacks.part_rounds
    times: Mapping[str, list[float]] = {}
    if engines:
        times = in_turn(sides | _peers_of_part(engines, Context(folder / "context", rendered)), stacks.peer_rounds)
        rounds -= stacks.peer_rounds
    times = _joined(times, in_turn(sides, rounds))
    warm = in_turn({"ours": ours.warm}, stacks.rebuild_rounds)["ours"]
    return _Part(f"{len(wheel_sizes(rendered))} wheels", times, warm)


def _part_figures(part: _Part, engines: Sequence[Engine]) -> Iterator[Figure]:
    for item in engines:
        is_peer = item is engines[0]
        suffix = "" if is_peer else f"_{item.store}"
        note = f"{part.words}, cold, whole commands; the peer's image in the {item.store} store"
        pip, uv = f"pip_{item.store}", part.faster_uv(item.store)
        yield times_faster(f"oci_vs_pip{suffix}", pip, part.times, 30 if is_peer else None, note)
        yield times_faster(f"oci_vs_uv{suffix}", uv, part.times, 12 if is_peer else None, note)
    yield _limit("oci_vs_limit", part.times, part.words)
    called = {"ours": part.times["here"], "limit": part.times["limit"]}
    note = f"{part.words}, cold: without Python's start and the planning"
    yield ours_by("oci_vs_limit_called", "limit", called, None, note)
    note = f"{part.words}, all layers known, the image not: the command against 1 s"
    yield ours_by("oci_warm", "mark", {"ours": part.warm, "mark": [WARM_SECONDS]}, 1.0, note)


def _whole(stacks: Stacks, folder: Path, engines: Sequence[Engine], part: _Part) -> Iterator[Figure]:
    ours = Assembler(folder, ROOT, stacks.whole)
    rendered = ours.render(folder / "rendered")
    before = wheel_sizes(rendered)
    words = f"{len(before)} wheels"
    peaks: list[float] = []
    sides = _alone(ours, rendered, folder, peaks)
    times: Mapping[str, list[float]] = in_turn(sides, max(1, stacks.whole_rounds - 1))
    old = ours.build()
    yield _size(ours.own_bytes(old), sum(before.values()))
    project = bumped_project(ROOT, folder / "project", stacks.bump)
    rebuilds = _rebuilds(ours, project, old, stacks.rebuild_rounds)
    yield _upgrade(old, rebuilds.built, before, wheel_sizes(ours.in_project(project).render(folder / "bumped")))
    against = {"ours": rebuilds.seconds, "mark": [REBUILD_SECONDS]}
    yield ours_by("rebuild_seconds", "mark", against, 1.0, f"{stacks.bump} in {words}: the command against 2 s")
    yield _limit("oci_vs_limit_full", times, words)
    memory = {"ours": [max(peaks)], "mark": [float(MEMORY_MIB)]}
    yield ours_by("memory_mib", "mark", memory, 1.0, f"{words}, cold: peak of the largest process, against 200 MiB")
    ours.empty()
    peers = _peers_with_room(engines, folder, part, sum(before.values()), _unpacked_bytes(rendered))
    if stacks.whole_rounds > 1:
        times = _joined(times, in_turn(sides, 1))
    ours.empty()
    yield from _whole_against_uv({**times, **peers}, {"ours": rebuilds.seconds, **peers}, words, stacks.bump)


def _whole_against_uv(
    cold: Mapping[str, list[float]], again: Mapping[str, list[float]], words: str, bump: str
) -> Iterator[Figure]:
    """Compare with the faster of what uv's Dockerfiles took; one in a single step builds all of it anew each time."""
    built = [side for side in cold if side.startswith(("uv_layered_cold", "uv_one_step"))]
    rebuilt = [side for side in again if side.startswith(("uv_layered_again", "uv_one_step"))]
    if built:
        side = min(built, key=lambda side: cold[side])
        yield times_faster("oci_full_vs_uv", side, cold, 20, f"{words}, cold, whole commands")
    if rebuilt:
        side = min(rebuilt, key=lambda side: again[side])
        yield ours_by("rebuild_vs_uv", side, again, 1 / 50, f"{bump} in {words}, whole commands")


def _alone(
    ours: Assembler, rendered: Path, folder: Path, peaks: list[float] | None = None
) -> dict[str, Callable[[], float]]:
    """Return the sides that need no engine: our command, and the limit, each with the wheels in the page cache.

    Without that the first one in turn would read gigabytes from the disk for the other.
    """
    wheels, processes = wheels_below(rendered), len(os.sched_getaffinity(0))

    def command() -> float:
        _read_all(wheels)
        done = ours.cold()
        if peaks is not None:
            peaks.append(done.peak_mib)
        return done.seconds

    def limit() -> float:
        _read_all(wheels)
        return pass_all(wheels, folder, processes)[0]

    return {"ours": command, "limit": limit}


def _read_all(wheels: Iterable[Wheel]) -> None:
    for wheel in wheels:
        with wheel.path.open("rb", buffering=0) as file:
            while file.read(1024 * 1024):
                pass


def _joined(first: Mapping[str, list[float]], more: Mapping[str, list[float]]) -> dict[str, list[float]]:
    sides = [*first, *(side for side in more if side not in first)]
    return {side: [*first.get(side, ()), *more.get(side, ())] for side in sides}


def _limit(name: str, times: Mapping[str, list[float]], words: str) -> Figure:
    note = f"{words}, cold: the command against inflating, two digests and writing of the same bytes"
    return ours_by(name, "limit", times, 1.25, note)


@dataclass(frozen=True)
class _Rebuilds:
    built: Built
    seconds: list[float]


def _rebuilds(ours: Assembler, project: Path, old: Built, rounds: int) -> _Rebuilds:
    """Assemble the bumped release where all layers of the old one are known; the first time reads what is new."""
    known, bumped = ours.keys(), ours.in_project(project)
    built = bumped.build()

    def again() -> float:
        ours.empty(known)
        return bumped.build().run.seconds

    return _Rebuilds(built, in_turn({"ours": again}, rounds)["ours"])


def _peers_of_part(engines: Iterable[Engine], context: Context) -> dict[str, Callable[[], float]]:
    """Return the peers in each engine, to which the wheels have been brought."""
    found: dict[str, Callable[[], float]] = {}
    for item in engines:
        peers = Peers(item, context)
        peers.prime()
        found |= {
            f"pip_{item.store}": peers.pip,
            f"uv_{item.store}": peers.uv,
            f"uv_layered_{item.store}": peers.uv_layered_forgotten,
        }
    return found


def _peers_with_room(
    engines: Iterable[Engine], folder: Path, part: _Part, wheels_bytes: int, unpacked_bytes: int
) -> dict[str, list[float]]:
    """Measure in the first engine whose store has room for the whole stack, else skip by name."""
    free_gib = shutil.disk_usage(folder).free / 1024**3
    for item in engines:
        needed_gib = room_for(item.store, wheels_bytes, unpacked_bytes) / 1024**3
        if needed_gib <= free_gib:
            return _peers_of_whole(item, folder, part)
        reason = f"the {item.store} store needs {needed_gib:.0f} GiB of disk, {free_gib:.0f} are free"
        _skip(f"oci_full_vs_uv, rebuild_vs_uv in the {item.store} store", Skipped(reason))
    return {}


def _peers_of_whole(item: Engine, folder: Path, part: _Part) -> dict[str, list[float]]:
    """Return seconds of each build; what fills the disk is removed as soon as it is not needed.

    A single step takes minutes, and is tried only where it was the faster with the part.
    """
    context = Context(folder / "context", folder / "rendered")
    peers = Peers(item, context)
    peers.prime()
    times = in_turn({f"uv_layered_cold_{item.store}": peers.uv_layered}, 1)
    context.take(folder / "bumped")
    try:
        times |= in_turn({f"uv_layered_again_{item.store}": peers.uv_layered_again}, 1)
    except RuntimeError as failure:  # containerd's store has lost a snapshot of the first build once
        _skip("rebuild_vs_uv in layers", Skipped(str(failure)[-300:]))
    peers.forget()
    if not part.faster_uv(item.store).startswith("uv_layered"):
        times |= in_turn({f"uv_one_step_{item.store}": peers.uv}, 1)
    peers.forget(everything=True)
    return times


def _size(layers_bytes: int, wheels_bytes: int) -> Figure:
    sides = {"ours": float(layers_bytes), "wheels": float(wheels_bytes)}
    return Figure("size_vs_wheels", layers_bytes / wheels_bytes, sides, 1.02, "bytes of all layers above the base")


def _upgrade(old: Built, new: Built, before: Mapping[str, int], after: Mapping[str, int]) -> Figure:
    """Compare what a node with the old image pulls, documents included, with the wheels that have changed."""
    known = old.layers()
    pulled = sum(size for digest, size in new.layers().items() if digest not in known)
    pulled += new.manifest_bytes + new.manifest["config"]["size"]
    changed = sum(size for name, size in after.items() if name not in before)
    sides = {"ours": float(pulled), "wheels": float(changed)}
    return Figure(
        "upgrade_bytes", pulled / changed, sides, 1.05, "layers, manifest and config; the wheels that changed"
    )


def _unpacked_bytes(rendered: Path) -> int:
    return sum(wheel.size_bytes for wheel in wheels_below(rendered))


def _skip(names: str, reason: Skipped) -> None:
    print(f"skipped: {names} ({reason})", file=sys.stderr)
