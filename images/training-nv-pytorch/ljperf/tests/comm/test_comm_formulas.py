"""Sizes, bandwidths, results and versions, without a group."""

from __future__ import annotations

from pathlib import Path

import pytest
from ljperf.comm.library import decoded, loaded, mapped, name_of
from ljperf.comm.operations import OPERATIONS, Buffers, Operation, bus_factor, elements, fill, pattern, wrong
from ljperf.comm.report import COLUMNS, average, heading, line
from ljperf.comm.sizes import sizes_of
from ljperf.comm.sweep import Row
from ljperf.errors import UsageError


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1K..8K", (1024, 2048, 4096, 8192)),
        ("3K..8k", (3072, 6144, 8192)),
        ("64M,1K", (1024, 67108864)),
        ("5", (5,)),
        ("1KiB, 2MB", (1024, 2097152)),
    ],
)
def test_sizes_are_lists_and_ranges_that_double(text: str, sizes: tuple[int, ...]) -> None:
    assert sizes_of(text) == sizes


@pytest.mark.parametrize("text", ["", "1K..", "..4K", "8K..1K", "0", "-1", "1T", "1.5K", "x", "1K...4K", "9999G"])
def test_what_is_no_size_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        sizes_of(text)
    assert "64M" in (caught.value.hint or "")


# nccl-tests, PERFORMANCE.md: all-reduce 2 (n-1)/n, the other two (n-1)/n.
@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [
        ("all-reduce", 2, 1.0),
        ("all-reduce", 8, 1.75),
        ("all-gather", 8, 0.875),
        ("reduce-scatter", 4, 0.75),
        ("all-reduce", 1, 0.0),
    ],
)
def test_bus_bandwidth_has_nccl_tests_factors(operation: Operation, ranks: int, factor: float) -> None:
    assert bus_factor(operation, ranks) == factor


@pytest.mark.parametrize(
    ("operation", "size", "ranks", "expected"),
    [
        ("all-reduce", 1024, 8, (256, 256)),
        ("all-gather", 1024, 8, (256, 32)),
        ("reduce-scatter", 1000, 8, (248, 31)),
        ("all-gather", 4, 8, (8, 1)),
        ("all-reduce", 1, 8, (1, 1)),
    ],
)
def test_a_size_is_the_whole_and_a_rank_has_its_part(
    operation: Operation, size: int, ranks: int, expected: tuple[int, int]
) -> None:
    assert elements(operation, size, 4, ranks) == expected


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32"])
def test_a_result_is_right_only_if_every_element_is(operation: Operation, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ranks, me, part, kind = 4, 2, 5, getattr(torch, dtype)
    whole = part if operation == "all-reduce" else part * ranks
    everyone = [pattern(rank, 0, whole, kind, "cpu") for rank in range(ranks)]
    if operation == "all-gather":
        result = torch.cat([one[:part] for one in everyone])
    else:
        result = torch.stack(everyone).sum(0).to(kind)
        result = result if operation == "all-reduce" else result[me * part : (me + 1) * part]
    held = Buffers(everyone[me], result.clone())
    assert wrong(operation, held, me, ranks, "cpu") == 0
    held.receive[1] += 1
    held.receive[3] = 0 if result[3] else 1
    assert wrong(operation, held, me, ranks, "cpu") == 2


@pytest.mark.parametrize("ranks", [1, 3, 127, 128, 200, 1000, 10_000])
def test_sums_over_many_ranks_are_exact_in_bf16(ranks: int) -> None:
    torch = pytest.importorskip("torch")
    total = torch.zeros(6, dtype=torch.bfloat16)
    for rank in range(ranks):
        held = Buffers(torch.zeros(6, dtype=torch.bfloat16), total)
        fill("all-reduce", held, rank, ranks, "cpu")
        total += held.send
    assert wrong("all-reduce", held, 0, ranks, "cpu") == 0
    total[2] += 2
    assert wrong("all-reduce", held, 0, ranks, "cpu") == 1


# nccl.h: NCCL_VERSION(2,7,8) is 2708 up to 2.8, NCCL_VERSION(2,21,5) is 22105.
@pytest.mark.parametrize(("code", "version"), [(2708, "2.7.8"), (22105, "2.21.5"), (20900, "2.9.0"), (22703, "2.27.3")])
def test_ncclgetversion_is_decoded(code: int, version: str) -> None:
    assert decoded(code) == version


def test_the_library_is_the_one_that_is_loaded(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "7f0-7f1 r-xp 00000000 08:01 1   /opt/my libs/nvidia/nccl/lib/libnccl.so.2\n"
        "7f1-7f2 r--p 00000000 08:01 1   /opt/my libs/nvidia/nccl/lib/libnccl.so.2\n"
        "7f2-7f3 r-xp 00000000 08:01 2   /usr/lib/libnccl-net.so\n"
        "7f3-7f4 rw-p 00000000 00:00 0 \n"
        "7f4-7f5 r-xp 00000000 08:01 3   /usr/lib/libnccl_like.txt\n"
    )
    libraries, plugins = loaded(mapped(maps))
    assert libraries == ["/opt/my libs/nvidia/nccl/lib/libnccl.so.2"]
    assert plugins == ["/usr/lib/libnccl-net.so"]
    assert mapped(tmp_path / "absent") == []


def test_accl_is_known_by_its_folder_or_by_the_file_it_really_is(tmp_path: Path) -> None:
    real = tmp_path / "libaccl-n.so.2.2"
    real.touch()
    link = tmp_path / "libnccl.so.2"
    link.symlink_to(real)
    assert name_of("/usr/local/accl/lib/libnccl.so.2") == "ACCL-N"
    assert name_of("/usr/lib/libnccl.so.2") == name_of(None) == "NCCL"
    assert name_of(str(link)) == "ACCL-N"


def test_rows_stand_under_their_columns() -> None:
    from ljperf.comm.library import Library

    row = Row("all-gather", 67108864, 2097152, "bfloat16", 1234.567, 54.36, 47.56, 0, 20)
    title, names, units = heading("all-gather", 8, 1, Library("NCCL", "2.21.5", "/x/libnccl.so.2")).splitlines()
    assert "8 ranks on 1 machine, NCCL 2.21.5 (/x/libnccl.so.2)" in title
    assert names.lstrip("#").split() == list(COLUMNS)
    assert line(row).split() == ["67108864", "2097152", "bfloat16", "none", "1234.57", "54.360", "47.560", "0"]
    assert names.index("algbw") + len("algbw") == line(row).index("54.360") + len("54.360")
    assert len(units) <= len(names)
    assert average([row, row]).endswith(": 47.56")
    assert "nothing" in average([])
