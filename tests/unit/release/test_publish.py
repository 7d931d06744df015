"""The decisions of a run, with a registry of a dozen lines; tests/integration/test_push.py has real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.docker.push import PushProgress
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import EngineError, Interrupted, PartlyPublishedError, PublishError
from lj_image.release.outcome import Outcome, Result, Wishes, published_line
from lj_image.release.publish import decide, publish
from lj_image.release.record import Built, Pushed, Record, Records, Verified
from lj_image.release.references import Target, targets

KEY = "25.02-serverless"
IMAGE_ID = "sha256:" + "1" * 64
OURS = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
BUILT = Built(IMAGE_ID, "x:t", "i", "p", "l", "docker", "base", "2025-02-01T00:00:00+00:00", 1.0, 1)
VERIFIED = Verified(IMAGE_ID, True, 3, (), {}, "2025-02-01T00:00:00+00:00")

Publish = Callable[..., Outcome]


class Registry:
    """An engine and all registries at once."""

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}
        self.pushed: list[str] = []
        self.down: set[str] = set()
        self.digest = OURS
        self.after_push: Callable[[str], None] = lambda sent_to: None
        self.has_image = True

    def digests(self, image_id: str) -> tuple[str, ...] | None:
        return (image_id,) if self.has_image else None

    def remote_digest(self, sent_to: str) -> str | None:
        if sent_to in self.down:
            raise PublishError(f"{sent_to} is down", hint="start it")
        return self.tags.get(sent_to)

    def push_everywhere(self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: object) -> None:
        return None

    is_parallel = False

    def cut_off(self) -> None:
        """Do nothing."""

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        digest = self.tags[sent_to] = self.digest
        self.pushed.append(sent_to)
        self.after_push(sent_to)
        return digest


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def records(tmp_path: Path) -> Records:
    records = Records(tmp_path, "training-nv-pytorch")
    records.update(KEY, lambda _: Record("training-nv-pytorch", "25.02", "serverless", BUILT, VERIFIED))
    return records


@pytest.fixture
def places(release: Release, config: Config) -> tuple[Target, ...]:
    """Return the public place, Beijing and Shanghai."""
    return targets(release, release.tag, ("cn-beijing", "cn-shanghai"), True, config)


@pytest.fixture
def run(release: Release, records: Records, registry: Registry, places: tuple[Target, ...]) -> Publish:
    def call(**options: object) -> Outcome:
        options = {"records": records, "key": KEY, "sender": registry, "targets": places} | options
        return publish(release, release.tag, **options)  # type: ignore[arg-type]

    return call


def states(outcome: Outcome) -> list[str]:
    return [result.state for result in outcome.results]


def set_record(records: Records, **changes: object) -> None:
    records.update(KEY, lambda record: replace(record, **changes))  # type: ignore[type-var,arg-type]


def recorded(records: Records) -> tuple[Pushed, ...]:
    record = records.read(KEY)
    assert record is not None
    return record.pushed


@pytest.mark.parametrize(
    ("at_registry", "known", "force_tag", "state"),
    [
        (None, (IMAGE_ID,), False, "planned"),
        (OURS, (IMAGE_ID, OURS), False, "already"),
        (OURS, (IMAGE_ID, OURS), True, "already"),  # the same digest needs no force, and no push
        (OTHER, (IMAGE_ID, OURS), False, "refused"),
        (OTHER, (IMAGE_ID, OURS), True, "planned"),
        (OURS, (OURS,), False, "already"),  # a containerd store: the image id is the manifest's digest
    ],
)
def test_what_a_tag_holds_decides(
    places: tuple[Target, ...], at_registry: str | None, known: tuple[str, ...], force_tag: bool, state: str
) -> None:
    assert decide(places[0], at_registry, known, IMAGE_ID, force_tag=force_tag).state == state


@pytest.mark.parametrize("force_tag", [False, True])
def test_a_tag_that_would_move_names_both_digests(places: tuple[Target, ...], force_tag: bool) -> None:
    message = decide(places[0], OTHER, (IMAGE_ID, OURS), IMAGE_ID, force_tag=force_tag).message
    assert OTHER in message
    assert OURS in message


def test_a_tag_that_would_move_names_the_image_while_its_digest_is_unknown(places: tuple[Target, ...]) -> None:
    message = decide(places[0], OTHER, (IMAGE_ID,), IMAGE_ID, force_tag=False).message
    assert OTHER in message
    assert IMAGE_ID in message


def test_every_place_gets_the_image_and_the_record_says_so(
    run: Publish, records: Records, places: tuple[Target, ...]
) -> None:
    outcome = run()
    assert states(outcome) == ["published"] * 3
    assert outcome.error() is None
    assert published_line(outcome) == " ".join(f"{place.reference}@{OURS}" for place in places)
    assert [(item.reference, item.digest, item.verified) for item in recorded(records)] == [
        (place.reference, OURS, True) for place in places
    ]
    assert [(item.network, item.region) for item in recorded(records)][1:] == [
        ("vpc", "cn-beijing"),
        ("vpc", "cn-shanghai"),
    ]


def test_a_second_run_sends_nothing_and_leaves_the_record_alone(
    run: Publish, registry: Registry, records: Records
) -> None:
    run()
    before, registry.pushed = records.path(KEY).stat().st_ino, []
    assert states(run()) == ["already"] * 3
    assert registry.pushed == []
    assert records.path(KEY).stat().st_ino == before  # a change would be another file, by rename


def test_one_place_down_leaves_the_others_done_and_a_rerun_touches_only_that_one(
    run: Publish, registry: Registry, places: tuple[Target, ...]
) -> None:
    registry.down = {places[1].sent_to}
    outcome = run()
    assert states(outcome) == ["published", "failed", "published"]
    error = outcome.error()
    assert isinstance(error, PartlyPublishedError)
    assert error.exit_code == 3
    assert f"{places[1].reference}: {places[1].sent_to} is down" in error.message
    assert "start it" in (error.hint or "")
    registry.down, registry.pushed = set(), []
    assert states(run()) == ["already", "published", "already"]
    assert registry.pushed == [places[1].sent_to]


def test_nothing_published_is_exit_code_1(run: Publish, registry: Registry, places: tuple[Target, ...]) -> None:
    registry.down = {place.sent_to for place in places}
    error = run().error()
    assert type(error) is PublishError
    assert error.exit_code == 1


def test_all_tags_are_asked_for_before_the_first_byte(
    run: Publish, registry: Registry, places: tuple[Target, ...]
) -> None:
    order: list[str] = []
    ask, push = registry.remote_digest, registry.push
    registry.remote_digest = lambda sent_to: (order.append("ask"), ask(sent_to))[1]  # type: ignore[method-assign]
    registry.push = lambda *rest: (order.append("push"), push(*rest))[1]  # type: ignore[method-assign,func-returns-value]
    run()
    assert order[: len(places)] == ["ask"] * len(places)


def test_a_refused_place_keeps_its_tag_and_the_others_get_theirs(
    run: Publish, registry: Registry, places: tuple[Target, ...]
) -> None:
    registry.tags[places[0].sent_to] = OTHER
    outcome = run()
    assert states(outcome) == ["refused", "published", "published"]
    assert registry.tags[places[0].sent_to] == OTHER
    assert isinstance(outcome.error(), PartlyPublishedError)
    assert "--force-tag" in (outcome.error().hint or "")  # type: ignore[union-attr]


def test_force_moves_the_tag_and_says_from_where(run: Publish, registry: Registry, places: tuple[Target, ...]) -> None:
    registry.tags[places[0].sent_to] = OTHER
    outcome = run(wishes=Wishes(force_tag=True))
    assert states(outcome) == ["published"] * 3
    assert OTHER in outcome.results[0].message


def test_a_tag_that_appears_during_a_long_run_is_not_overwritten(
    run: Publish, registry: Registry, places: tuple[Target, ...]
) -> None:
    def somebody_else(sent_to: str) -> None:
        registry.tags[places[2].sent_to] = OTHER

    registry.after_push = somebody_else
    assert states(run()) == ["published", "published", "refused"]
    assert registry.tags[places[2].sent_to] == OTHER


def test_a_tag_moved_between_push_and_reading_back_is_not_ours(
    run: Publish, registry: Registry, records: Records, places: tuple[Target, ...]
) -> None:
    def move(sent_to: str) -> None:
        if sent_to == places[1].sent_to:
            registry.tags[sent_to] = OTHER

    registry.after_push = move
    outcome = run()
    assert states(outcome) == ["published", "failed", "published"]
    assert all(word in outcome.results[1].message for word in ("moved meanwhile", OURS, OTHER))
    assert places[1].reference not in {item.reference for item in recorded(records)}


def test_a_tag_that_is_gone_after_the_push_is_not_published(run: Publish, registry: Registry) -> None:
    registry.after_push = registry.tags.pop
    assert states(run()) == ["failed"] * 3


def test_places_that_end_on_different_digests_are_an_error(
    run: Publish, registry: Registry, records: Records, places: tuple[Target, ...]
) -> None:
    def next_engine(_: str) -> None:
        registry.digest = OTHER

    registry.after_push = next_engine
    outcome = run()
    assert states(outcome) == ["published", "failed", "failed"]
    assert all(digest in outcome.results[1].message for digest in (OURS, OTHER))
    assert [item.reference for item in recorded(records)] == [places[0].reference]


def test_a_later_run_for_another_region_must_end_on_the_digest_of_the_first(
    run: Publish, registry: Registry, places: tuple[Target, ...]
) -> None:
    run(targets=places[:1])
    registry.digest = OTHER
    assert states(run(targets=places[1:2])) == ["failed"]


def test_two_references_at_one_place_are_sent_once(
    run: Publish, registry: Registry, release: Release, config_with: Callable[..., Config], records: Records
) -> None:
    config = config_with(**{"acs-registry-vpc.{region}.cr.aliyuncs.com": "127.0.0.1:5000"})
    both = targets(release, release.tag, ("cn-beijing", "cn-shanghai"), False, config)
    assert states(run(targets=both)) == ["published", "already"]
    assert len(registry.pushed) == 1
    assert [item.reference for item in recorded(records)] == [place.reference for place in both]


def test_dry_run_asks_and_sends_nothing(
    run: Publish, registry: Registry, records: Records, places: tuple[Target, ...]
) -> None:
    registry.tags |= {places[0].sent_to: OTHER}
    outcome = run(wishes=Wishes(dry_run=True))
    assert states(outcome) == ["refused", "planned", "planned"]
    assert registry.pushed == []
    assert recorded(records) == ()
    assert isinstance(outcome.error(), PartlyPublishedError)
    assert published_line(outcome) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"built": None}, "has not been built"),
        ({"built": replace(BUILT, partial=True)}, "partial"),
        ({"built": replace(BUILT, overridden={"vllm": "0.7.3"})}, "--set vllm=0.7.3"),
        ({"verified": None}, "not verified"),
        ({"verified": replace(VERIFIED, passed=False, failed=("cuda",))}, "failed its verification: cuda"),
        ({"verified": replace(VERIFIED, image_id=OTHER)}, "built anew after it was verified"),
    ],
)
def test_an_image_that_is_not_fit_is_refused_before_any_question(
    run: Publish, registry: Registry, records: Records, changes: dict[str, object], says: str
) -> None:
    set_record(records, **changes)
    registry.remote_digest = lambda sent_to: pytest.fail("asked")  # type: ignore[method-assign]
    with pytest.raises(PublishError, match=says) as caught:
        run()
    assert caught.value.hint


def test_a_release_without_record_is_refused(run: Publish) -> None:
    with pytest.raises(PublishError, match=r"25\.03-serverless has not been built"):
        run(key="25.03-serverless")


def test_an_image_that_left_the_engine_is_refused(run: Publish, registry: Registry) -> None:
    registry.has_image = False
    with pytest.raises(PublishError, match="does not have the image"):
        run()


@pytest.mark.parametrize("partial", [{"partial": True}, {"overridden": {"vllm": "0.7.3"}}])
def test_without_verification_a_partial_or_tried_image_is_refused_all_the_same(
    run: Publish, records: Records, partial: dict[str, object]
) -> None:
    set_record(records, built=replace(BUILT, **partial))  # type: ignore[arg-type]
    with pytest.raises(PublishError):
        run(verify=False)


def test_an_image_from_before_the_last_edit_of_its_release_is_refused(run: Publish, registry: Registry) -> None:
    with pytest.raises(PublishError, match="was changed after its image was built"):
        run(planned="another plan")
    assert run(planned=BUILT.plan, wishes=Wishes(dry_run=True)).error() is None


def test_without_verification_the_record_says_that_there_was_none(run: Publish, records: Records) -> None:
    set_record(records, verified=None)
    assert run(verify=False).verified is False
    assert {item.verified for item in recorded(records)} == {False}
    set_record(records, verified=VERIFIED)
    assert states(run()) == ["already"] * 3
    assert {item.verified for item in recorded(records)} == {True}


@pytest.mark.parametrize("moment", ["ask", "push", "read back"])
def test_ctrl_c_leaves_in_the_record_what_was_done_and_a_rerun_does_the_rest(
    run: Publish, registry: Registry, records: Records, places: tuple[Target, ...], moment: str
) -> None:
    ask, push, pressed = registry.remote_digest, registry.push, []

    def press_ctrl_c(when: str) -> None:
        if when == moment and not pressed and (when == "ask" or len(registry.pushed) == 2):
            pressed.append(when)
            raise KeyboardInterrupt

    def asking(sent_to: str) -> str | None:
        press_ctrl_c("read back" if registry.pushed and registry.pushed[-1] == sent_to else "ask")
        return ask(sent_to)

    def pushing(image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        if len(registry.pushed) == 1 and moment == "push" and not pressed:
            pressed.append("push")
            raise KeyboardInterrupt
        return push(image_id, sent_to)

    registry.remote_digest, registry.push = asking, pushing  # type: ignore[method-assign]
    with pytest.raises(Interrupted) as caught:
        run()
    assert caught.value.exit_code == 130
    done = {"ask": 0, "push": 1, "read back": 2}[moment]  # a push that is complete is proven before the run ends
    assert f"{done} of 3" in caught.value.message
    assert len(recorded(records)) == done
    assert states(run()) == ["already"] * done + ["published"] * (3 - done)
    assert sorted(registry.pushed) == sorted(place.sent_to for place in places)


def test_an_engine_that_goes_away_fails_every_place_with_its_reason(run: Publish, registry: Registry) -> None:
    def gone(*_: object) -> str:
        raise EngineError("the engine went away")

    registry.push = gone  # type: ignore[method-assign,assignment]
    outcome = run()
    assert states(outcome) == ["failed"] * 3
    assert {result.message for result in outcome.results} == {"the engine went away"}


def test_the_table_has_a_row_per_place_and_names_where_the_bytes_went(
    release: Release, config_with: Callable[..., Config]
) -> None:
    config = config_with(**{"acs-registry-vpc.{region}.cr.aliyuncs.com": "127.0.0.1:5000"})
    public, beijing = targets(release, release.tag, ("cn-beijing",), True, config)
    results = (Result(public, "refused", OTHER, "no"), Result(beijing, "published", OURS))
    outcome = Outcome("training-nv-pytorch", "25.02", "25.02-serverless", IMAGE_ID, True, results)
    assert outcome.lines() == (
        f"refused    {public.reference}  {OTHER}  no",
        f"published  {beijing.reference:<{len(public.reference)}}  {OURS}  (at {beijing.sent_to})",
    )


def test_json_says_for_every_place_what_became_of_it(run: Publish, places: tuple[Target, ...]) -> None:
    values = json.loads(json.dumps(run().to_json()))
    assert values["image_id"] == IMAGE_ID
    assert values["targets"][1] == {
        "reference": places[1].reference,
        "sent_to": places[1].sent_to,
        "network": "vpc",
        "region": "cn-beijing",
        "state": "published",
        "digest": OURS,
        "message": "",
        "hint": None,
        "carried": None,
        "previous": {},
        "notes": [],
    }
