"""A whole run without an engine: builds and proofs are made up, everything else is the real thing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from lj_image.builders.docker.push import PushProgress
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.errors import BuildError, EngineError, LjImageError, LockError, PublishError
from lj_image.lock.lock import Lock
from lj_image.plan import Plan, plan_digest
from lj_image.release.build import Workshop
from lj_image.release.builder_choice import BuilderChoice, BuilderName
from lj_image.release.outcome import Wishes
from lj_image.release.pipeline import making
from lj_image.release.pipeline.report import RunReport
from lj_image.release.pipeline.run import release as run_release
from lj_image.release.pipeline.summary import markdown
from lj_image.release.pipeline.work import Asked, Means
from lj_image.release.publish import Sender
from lj_image.release.record import Built, Record, Records, Verified
from lj_image.release.references import Target
from lj_image.templating import Templates
from lj_image.verify.report import Check, VerifyReport
from samples.locks import made_up_lock
from samples.tiny import RELEASE

IMAGE_ID = "sha256:" + "1" * 64
OCI_ID = "sha256:" + "2" * 64
DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
AT = "2025-02-28T10:00:00+00:00"
PUBLIC = "public.example/team/tiny:25.02-tool1.4"
NORTH = "vpc.north.example/team/tiny:25.02-tool1.4"
SOUTH = "vpc.south.example/team/tiny:25.02-tool1.4"


@dataclass
class World:
    """Engine and registries, as far as a run sees them; and the project."""

    catalog: Catalog
    config: Config
    page: Path
    tags: dict[str, str] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    failing: dict[str, BaseException] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    """Builds, proofs and pushes that were really made."""
    said: list[str] = field(default_factory=list)
    passes: bool = True
    has_engine: bool = True

    def run(self, *regions: str, public: bool = True, dry_run: bool = False, **asked: Any) -> RunReport:
        """Run once."""
        self.done.clear()
        return run_release(
            Asked("25.02", "open", regions, public, dry_run, summary=self.page, **asked),
            Means(
                catalog=self.catalog,
                config=lambda: self.config,
                lint=lambda release: lint(self.catalog, release),
                resolve=lambda name, variant: resolve(self.catalog, self.config, name, variant=variant),
                lock=self.lock,
                templates=lambda: Templates(()),
                choose=self.choose,
                workshop=self.workshop,
                assemble=self.assemble,
                sender=self.sender,
                observe=lambda: None,
                say=self.said.append,
            ),
        )

    def lock(self, release: Release) -> Lock:
        self._fail("lock")
        return made_up_lock(release)

    def choose(self, wanted: BuilderName) -> BuilderChoice:
        if wanted == "auto" and not self.has_engine:
            return BuilderChoice("oci", "no engine answers")
        return BuilderChoice(wanted, "asked for")

    def workshop(self, release: Release) -> Workshop:
        if not self.has_engine:
            raise EngineError("no engine answers at unix:///nobody", hint="start the engine, or set DOCKER_HOST")
        return cast("Workshop", None)

    def sender(self, release: Release, built: Built | None) -> Sender:
        """Return ourselves."""
        return self

    def push_everywhere(self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: object) -> None:
        return None

    is_parallel = False

    def cut_off(self) -> None:
        """Do nothing."""

    def assemble(self, plan: Plan) -> tuple[Built, bool]:
        return self._made(plan, "assemble", "oci", OCI_ID)

    def build(self, plan: Plan, *rest: Any) -> tuple[Built, bool]:
        return self._made(plan, "build", "docker", IMAGE_ID)

    def _made(self, plan: Plan, what: str, builder: str, image_id: str) -> tuple[Built, bool]:
        self._fail(what)
        there = self.record()
        if there is not None and there.built is not None and there.built.builder == builder:
            return there.built, True
        self.done.append(what)
        built = Built(image_id, "tiny:t", "i", plan_digest(plan), "l", builder, "base", AT, 1.0, 1024**2)
        self.records.update(plan.key, lambda _: Record("tiny", "25.02", "open", built))
        return built, False

    def prove(self, plan: Plan, image_id: str, workshop: Any, *, junit: Path) -> tuple[VerifyReport, Record]:
        self._fail("verify")
        self.done.append("verify")
        checks = (Check("component[tool]", "tool", "passed" if self.passes else "failed", "1.4.2", "1.4.2"),)
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text("<testsuites/>")
        verified = Verified(image_id, self.passes, 1, (), {"tool": "1.4.2"}, AT)
        return VerifyReport(image_id, checks), self.records.update(
            plan.key, lambda record: Record("tiny", "25.02", "open", record and record.built, verified)
        )

    def digests(self, image_id: str) -> tuple[str, ...]:
        return (image_id,)

    def remote_digest(self, sent_to: str) -> str | None:
        if sent_to in self.down:
            raise PublishError(f"{sent_to} is down", hint="start it")
        return self.tags.get(sent_to)

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        self._fail("push")
        self.done.append(sent_to)
        self.tags[sent_to] = DIGEST
        return DIGEST

    def _fail(self, what: str) -> None:
        if what in self.failing:
            raise self.failing.pop(what)

    @property
    def records(self) -> Records:
        return Records(self.config.cache_dir, "tiny")

    def record(self) -> Record | None:
        return self.records.read("25.02-open")

    @property
    def output(self) -> Path:
        return self.catalog.root.parent / "build/release/tiny/25.02-open"


@pytest.fixture
def world(
    write_catalog: Callable[..., Catalog], config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    made = World(write_catalog(), config, tmp_path / "page.md")
    monkeypatch.setattr(making, "build", made.build)
    monkeypatch.setattr(making, "prove", made.prove)
    return made


def states(report: RunReport) -> dict[str, str]:
    return {step.name: step.state for step in report.steps}


def test_one_run_goes_all_the_way_and_the_next_one_repeats_nothing(world: World) -> None:
    report = world.run("all")
    assert report.error is None
    assert list(states(report)) == ["lint", "lock", "build", "verify", "push", "notes"]
    assert world.done == ["build", "verify", PUBLIC, NORTH, SOUTH]
    again = world.run("all")
    assert world.done == []
    assert states(again) == {"lint": "done", "lock": "done"} | dict.fromkeys(
        ("build", "verify", "push", "notes"), "skipped"
    )
    assert f"verify: skipped, this image was proven at {AT}" in world.said
    assert f"push: skipped, already: 3 places have {DIGEST}" in world.said


def test_the_oci_builder_goes_all_the_way_and_the_summary_names_it(world: World) -> None:
    report = world.run("north", builder="oci")
    assert report.error is None
    assert world.done == ["assemble", "verify", PUBLIC, NORTH]
    assert "builder: oci (asked for)" in world.said
    assert "| builder | `oci` |" in world.page.read_text()
    assert report.to_json()["builder"] == "oci"
    assert report.steps[2].what == f"tiny:t {OCI_ID}, 1.0 MiB compressed, by oci"
    assert states(world.run("north", builder="oci"))["build"] == "skipped"
    assert world.done == []


def test_without_an_engine_the_image_is_assembled_and_the_proof_says_what_it_lacks(world: World) -> None:
    world.has_engine = False
    report = world.run("north")
    assert (report.exit_code, report.steps[-1].name, world.tags) == (1, "verify", {})
    assert report.error is not None
    assert report.error.message == "a proof needs an engine: no engine answers at unix:///nobody"
    assert report.error.hint is not None
    assert "lj-image push 25.02 --no-verify" in report.error.hint
    assert world.done == ["assemble"]


def test_what_was_proven_is_published_where_no_engine_is(world: World) -> None:
    world.run(public=True, builder="oci")
    world.has_engine = False
    assert world.run("north").exit_code == 0
    assert world.done == [NORTH]


def test_another_builder_makes_another_image_which_is_proven_anew(world: World) -> None:
    world.run("north", builder="oci")
    world.tags.clear()
    report = world.run("north", builder="docker")
    assert report.error is None
    assert world.done == ["build", "verify", PUBLIC, NORTH]
    assert report.record is not None
    assert report.record.built is not None
    assert report.record.built.builder == "docker"


def test_a_dry_run_asks_registries_though_no_engine_answers(world: World) -> None:
    world.run("north")
    world.has_engine = False
    report = world.run("north", dry_run=True)
    assert report.exit_code == 0
    assert world.done == []
    world.records.path("25.02-open").unlink()
    report = world.run("north", dry_run=True)
    assert report.steps[2].what.startswith("would assemble, without an engine, ")


@pytest.mark.parametrize("step", ["lock", "build", "verify", "push"])
def test_interrupted_in_a_step_it_goes_on_there(world: World, step: str) -> None:
    world.failing[step] = KeyboardInterrupt()
    report = world.run("north")
    assert report.exit_code == 130
    assert report.steps[-1].name == step
    assert "**Interrupted**" in world.page.read_text()
    first = list(world.done)
    assert world.run("north").exit_code == 0
    assert first + world.done == ["build", "verify", PUBLIC, NORTH]


@pytest.mark.parametrize(
    ("step", "error", "code"),
    [
        ("lock", LockError("the lock is stale", hint="run: lj-image lock 25.02"), 2),
        ("build", BuildError("a step failed", hint="read its log"), 1),
        ("verify", LjImageError("the container does not start"), 1),
    ],
)
def test_a_step_that_fails_ends_the_run_and_is_in_the_summary(
    world: World, step: str, error: LjImageError, code: int
) -> None:
    world.failing[step] = error
    report = world.run("all")
    assert (report.exit_code, report.error) == (code, error)
    assert report.steps[-1].name == step
    assert world.tags == {}
    text = world.page.read_text()
    assert f"**Failed** at {step}." in text
    assert error.message in text
    assert (error.hint or "") in text
    assert json.loads((world.output / "release.json").read_text())["exit_code"] == code


def test_an_image_that_is_not_what_was_promised_is_not_pushed(world: World) -> None:
    world.passes = False
    report = world.run("all")
    assert (report.exit_code, report.steps[-1].name, world.tags) == (1, "verify", {})
    assert (world.output / "verify.junit.xml").exists()
    world.passes = True
    assert world.run("all").exit_code == 0
    assert world.done == ["verify", PUBLIC, NORTH, SOUTH]


def test_one_region_that_failed_is_exit_code_3_and_run_again_alone(world: World) -> None:
    world.down.add(NORTH)
    report = world.run("all")
    assert report.exit_code == 3
    assert states(report)["push"] == "partly"
    assert states(report)["notes"] == "skipped"  # taken; this family has none
    text = world.page.read_text()
    assert f"- `{NORTH}`: {NORTH} is down\n  - start it" in text
    assert "2 of 3 places of this release have it; missing: north." in text
    assert report.to_json()["missing"] == [NORTH]
    world.down.clear()
    again = world.run("north", public=False)
    assert again.exit_code == 0
    assert world.done == [NORTH]
    assert again.to_json()["references"] == [f"{name}@{DIGEST}" for name in (PUBLIC, SOUTH, NORTH)]


def test_when_no_place_takes_it_the_run_has_failed(world: World) -> None:
    world.down |= {PUBLIC, NORTH, SOUTH}
    report = world.run("all")
    assert report.exit_code == 1
    assert states(report)["push"] == "failed"
    assert world.page.read_text().count("is down\n  - start it") == 3


def test_a_machine_with_another_image_does_not_publish_a_single_region(world: World) -> None:
    world.tags[PUBLIC] = OTHER
    report = world.run("north", public=False)
    assert report.exit_code == 1
    assert report.error is not None
    assert report.error.message == (
        f"25.02-tool1.4 is public as {OTHER}, and this machine has another image, {IMAGE_ID}"
    )
    assert world.tags == {PUBLIC: OTHER}


def test_what_lint_finds_is_exit_code_2_and_told_before_anything_is_known(
    world: World, write_catalog: Callable[..., Catalog]
) -> None:
    write_catalog(r25_02=RELEASE.replace('"25.02"', "25.02"))
    report = world.run("all", output=world.page.with_name("papers"))
    assert (report.exit_code, list(states(report))) == (2, ["lint"])
    assert report.to_json()["steps"][0]["error"]["hint"] == 'quote it: "25.02"'
    assert 'quote it: "25.02"' in world.page.read_text()
    assert world.page.with_name("papers").joinpath("summary.md").read_text() == world.page.read_text()


@pytest.mark.parametrize(("regions", "words"), [(("noth",), "unknown region"), ((), "nothing says where")])
def test_a_place_that_is_unknown_is_exit_code_2(world: World, regions: tuple[str, ...], words: str) -> None:
    report = world.run(*regions, public=False)
    assert report.exit_code == 2
    assert report.error is not None
    assert words in report.error.message
    assert world.done == []


def test_a_dry_run_says_what_it_would_do_and_does_none_of_it(world: World) -> None:
    world.tags[NORTH] = OTHER
    report = world.run("all", dry_run=True)
    assert report.exit_code == 0
    assert states(report) == {"lint": "done", "lock": "done"} | dict.fromkeys(
        ("build", "verify", "push", "notes"), "planned"
    )
    assert [(result.state, result.message) for result in report.results] == [
        ("planned", "new tag"),
        ("planned", "the tag is there; whether it is ours shows when the image is built and pushed"),
        ("planned", "new tag"),
    ]
    assert world.done == []
    assert not world.output.exists()
    assert not world.records.folder.exists()
    assert "**Dry run**" in world.page.read_text()


def test_a_dry_run_after_a_release_knows_what_is_there(world: World) -> None:
    world.run("north")
    report = world.run("all", dry_run=True)
    assert [result.state for result in report.results] == ["already", "already", "planned"]
    assert world.done == []
    world.down.add(SOUTH)
    assert world.run("all", dry_run=True).exit_code == 3


def test_a_changed_release_is_built_into_nothing_by_a_dry_run(
    world: World, write_catalog: Callable[..., Catalog]
) -> None:
    world.run("north")
    write_catalog(r25_02=RELEASE.replace("1.4.2+ali", "1.4.3+ali"))
    report = world.run("north", dry_run=True)
    assert report.steps[2].what.startswith("would build ")
    assert report.results[0].state == "planned"


def test_papers_that_are_gone_are_written_again_without_a_new_proof(world: World) -> None:
    world.run("north")
    (world.output / "verify.json").unlink()
    world.run("north")
    assert world.done == []
    assert json.loads((world.output / "verify.json").read_text())["passed"] is True
    kept = world.records.folder / "runs/25.02-open/verify.json"
    kept.write_text("{}")  # not what was kept: the proof is made anew
    world.run("north")
    assert world.done == ["verify"]


def test_a_damaged_record_is_told_in_the_summary(world: World) -> None:
    world.run("north")
    world.records.path("25.02-open").write_text("{")
    report = world.run("north")
    assert report.exit_code == 1
    assert "the record of 25.02-open is damaged" in world.page.read_text()


def test_the_summary_is_added_to_the_page_and_keeps_its_tables_whole(world: World) -> None:
    world.page.write_text("before\n")
    world.failing["build"] = BuildError("sh: a | b\nfailed ``` here", hint="read on")
    report = world.run("north")
    text = world.page.read_text()
    assert text == "before\n" + markdown(report)
    assert "| sh: a \\| b failed ``` here |" in text
    assert text.count("```") == 3  # one in a cell, and the fence around the error
    assert "http" not in text
