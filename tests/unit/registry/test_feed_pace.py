"""Who leaves the others: the one that holds all up, never one of many that are alike."""

from __future__ import annotations

import random

import pytest

from lj_image.registry.transfer.pace import Member, Pace, Waiting


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Race:
    """Six members, of whom some wait for others as a feed tells it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.members = [Member(str(number)) for number in range(6)]
        self.left: list[str] = []
        self.pace = Pace(self.members, lambda member: self.left.append(member.name), self.clock)

    def wait(self, holders: list[int], waiting: list[int], seconds: float) -> None:
        since = self.clock.now
        self.clock.now += seconds
        held = [self.members[number] for number in holders]
        self.pace.waited(held, [self.members[number] for number in waiting], 6 - len(held), since)

    def take(self, *mib: int) -> None:
        for member, size in zip(self.members, mib, strict=True):
            self.pace.took(member, size << 20)


def test_overlapping_waits_count_once() -> None:
    waiting = Waiting()
    waiting.add(1.0, 3.0)
    waiting.add(2.0, 4.0)
    waiting.add(2.5, 3.5)
    assert waiting.seconds == pytest.approx(3.0)


def test_one_that_has_taken_next_to_nothing_leaves_at_once() -> None:
    race = Race()
    race.take(16, 16, 16, 16, 16, 0)
    for _ in range(5):
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == ["5"]


def test_one_that_is_like_the_others_has_a_grace() -> None:
    race = Race()
    race.take(16, 16, 16, 16, 16, 15)
    for _ in range(12):
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == []
    for _ in range(4):
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == ["5"]


def test_who_left_is_waited_for_no_more_and_told_once() -> None:
    race = Race()
    for _ in range(5):
        race.wait([5], [0, 1, 2, 3, 4], 5.0)
    assert race.left == ["5"]


def test_after_a_long_time_a_twentieth_of_it_is_borne() -> None:
    race = Race()
    race.take(99, 99, 99, 99, 99, 99)
    race.clock.now += 1000
    for _ in range(900):
        race.take(1, 1, 1, 1, 1, 1)
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == []


def test_one_that_stands_still_while_all_wait_leaves_soon_also_after_a_long_time() -> None:
    race = Race()
    race.clock.now += 100
    race.take(99, 99, 99, 99, 99, 99)
    for _ in range(60):
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == []
    for _ in range(20):
        race.wait([5], [0, 1, 2, 3, 4], 0.05)
    assert race.left == ["5"]


def test_those_that_hold_each_other_up_in_turn_stay_together() -> None:
    race, chance = Race(), random.Random(3)
    for _ in range(2000):
        race.take(1, 1, 1, 1, 1, 1)
        holder, *others = chance.sample(range(6), 6)
        race.wait([holder], others[: chance.randint(1, 3)], 0.05)
    assert race.left == []


def test_of_two_slow_ones_both_leave() -> None:
    race = Race()
    race.take(16, 16, 16, 16, 1, 1)
    for turn in range(20):
        race.wait([4 + turn % 2], [0, 1, 2, 3], 0.05)
    assert sorted(race.left) == ["4", "5"]


def test_one_that_is_faster_than_all_others_goes_ahead() -> None:
    race = Race()
    for turn in range(100):
        race.take(1, 1, 1, 1, 1, 1)
        race.wait([turn % 5], [5], 0.05)
    assert race.left == ["5"]


def test_nobody_leaves_when_nobody_else_is_in_step() -> None:
    race = Race()
    for member in race.members[:-1]:
        member.is_in_step = False
    race.wait([5], [0], 60.0)
    assert race.left == []
