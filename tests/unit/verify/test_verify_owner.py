"""Whose a container is."""

from __future__ import annotations

import subprocess
import sys

from lj_image.verify.owner import is_gone, owner_of_this_process

SAY = "from lj_image.verify.owner import owner_of_this_process; print(owner_of_this_process(), flush=True); input()"


def test_a_process_is_gone_once_it_has_ended_and_not_before() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        owner = other.stdout.readline().strip()
        alive = is_gone(owner)
        other.kill()

    assert owner != owner_of_this_process()
    assert (alive, is_gone(owner)) == (False, True)


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    mine = str(owner_of_this_process())
    place, _, _ = mine.rpartition("@")

    assert not is_gone(mine)
    assert is_gone(f"{place}@1")


def test_nothing_is_known_of_a_process_elsewhere() -> None:
    assert not is_gone("another-boot/pid:[4026531836]/1@1")
    assert not is_gone("")
