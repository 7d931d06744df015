"""Which steps a machine has, and what each of them trains with."""

from __future__ import annotations

import pytest
from ljperf.ablation.steps import TITLES, Asked, Machine, UnknownStepError, ladder
from ljperf.errors import UsageError

BARE = Machine()
WITH_DOCKER = Machine(engine=True)
WITH_LIBRARY = Machine(comm_library="/usr/local/accl/lib", library_path="/usr/local/accl/lib:/usr/lib/other")


def test_a_bare_machine_has_base_compile_and_checkpoint_and_says_why_not_more() -> None:
    steps, left_out = ladder(Asked(), BARE)
    assert [step.name for step in steps] == ["base", "compile", "checkpoint"]
    assert [one.name for one in left_out] == ["comm", "baseos"]
    assert "--env comm:NAME=VALUE" in left_out[0].why
    assert "--image baseos=REFERENCE" in left_out[1].why


def test_each_step_trains_with_all_of_the_earlier_ones() -> None:
    steps, _ = ladder(Asked(), BARE)
    assert [step.options for step in steps] == [
        ("--recompute", "full"),
        ("--recompute", "full", "--compile"),
        ("--recompute", "auto", "--compile"),
    ]


def test_the_order_is_the_users() -> None:
    steps, _ = ladder(Asked(names=("base", "checkpoint", "compile"), recompute="3"), BARE)
    assert [step.options for step in steps] == [
        ("--recompute", "full"),
        ("--recompute", "3"),
        ("--recompute", "3", "--compile"),
    ]


def test_hooks_of_the_image_are_off_in_every_step_so_that_options_alone_decide() -> None:
    for step in ladder(Asked(), BARE)[0]:
        assert {("LJPERF_HOOKS", ""), ("CHECKPOINT_OPTIMIZATION", ""), ("LJ_COMPILE", "")} <= set(step.environment)


def test_the_images_library_is_out_of_the_base_and_first_from_its_step_on() -> None:
    steps, _ = ladder(Asked(), WITH_LIBRARY)
    found = {step.name: dict(step.environment)["LD_LIBRARY_PATH"] for step in steps}
    assert found["base"] == "/usr/lib/other"
    assert found["comm"] == found["checkpoint"] == "/usr/local/accl/lib:/usr/lib/other"


def test_the_library_stays_where_it_is_if_nobody_asks_for_its_step() -> None:
    steps, _ = ladder(Asked(names=("base", "compile")), WITH_LIBRARY)
    assert all("LD_LIBRARY_PATH" not in dict(step.environment) for step in steps)


def test_an_image_holds_until_another_one_and_here_ends_it() -> None:
    images = {"base": "plain:1", "baseos": "ours:1", "checkpoint": "here"}
    steps, left_out = ladder(Asked(images=images, environments={"comm": {"NCCL_ALGO": "Ring"}}), WITH_DOCKER)
    assert not left_out
    assert [step.image for step in steps] == ["plain:1", "plain:1", "ours:1", "ours:1", None]
    assert [dict(step.environment).get("NCCL_ALGO") for step in steps] == [None, "Ring", "Ring", "Ring", "Ring"]


def test_this_machines_library_path_is_not_carried_into_an_image() -> None:
    machine = Machine(engine=True, comm_library="/usr/local/accl/lib", library_path="/usr/local/accl/lib")
    steps, _ = ladder(Asked(names=("base", "comm"), images={"base": "plain:1"}), machine)
    assert "LD_LIBRARY_PATH" not in dict(steps[0].environment)


def test_an_image_without_docker_is_left_out_with_its_name() -> None:
    steps, left_out = ladder(Asked(images={"base": "plain:1"}), BARE)
    assert [step.name for step in steps] == ["compile", "checkpoint"]
    assert steps[0].options == ("--recompute", "full", "--compile")
    assert left_out[0].why == "it is the image plain:1, and no docker answers here"


def test_a_misspelt_step_names_the_closest() -> None:
    with pytest.raises(UnknownStepError) as error:
        ladder(Asked(names=("base", "chekpoint")), BARE)
    assert error.value.hint == "did you mean checkpoint?"
    assert error.value.exit_code == 2


def test_a_step_like_no_other_lists_all() -> None:
    with pytest.raises(UnknownStepError) as error:
        ladder(Asked(names=("xyz",)), BARE)
    assert all(name in (error.value.hint or "") for name in TITLES)


def test_a_variable_for_a_step_that_is_not_asked_for_is_refused() -> None:
    with pytest.raises(UnknownStepError, match="none of --steps"):
        ladder(Asked(names=("base",), environments={"comm": {"A": "1"}}), BARE)


def test_a_step_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        ladder(Asked(names=("base", "compile", "base")), BARE)
