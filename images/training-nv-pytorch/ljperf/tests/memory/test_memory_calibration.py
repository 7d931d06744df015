"""The two constants: shipped, written, read, measured with an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest
from ljperf.memory.calibration import (
    Calibration,
    CalibrationFileError,
    calibration_folder,
    calibration_for,
    calibration_path,
    written,
)
from ljperf.memory.measuring import (
    COMMUNICATOR,
    Configuration,
    Measured,
    NothingMeasuredError,
    configurations,
    fitted,
    measured_all,
    partial_path,
    read_partial,
)
from ljperf.memory.on_device import train
from ljperf.models.catalog import model_named
from ljperf.setup import TrainingSetup

GB = 10**9
MEASURED = Calibration("h20-96g", 1.05, 2 * GB, 0.04, measured=True, source="here")


def three() -> list[Configuration]:
    return [Configuration(name, model_named("tiny"), TrainingSetup()) for name in "abc"]


def measured(name: str, allocated: int = 10 * GB, reserved: int = 11 * GB) -> Measured:
    return Measured(name, allocated, reserved, beside=GB, predicted=allocated)


def test_what_is_shipped_was_measured_nowhere_and_says_so(tmp_path: Path) -> None:
    shipped = calibration_for("h20-96g", tmp_path)
    assert not shipped.measured
    assert shipped.band >= 0.1


def test_the_users_own_measurement_comes_first(tmp_path: Path) -> None:
    calibration_path("h20-96g", tmp_path).write_text(written(MEASURED))
    assert calibration_for("h20-96g", tmp_path) == MEASURED
    assert calibration_for("h200-141g", tmp_path).device == "any"


def test_the_folder_is_the_variables_else_among_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LJPERF_CALIBRATION", str(tmp_path))
    assert calibration_folder() == tmp_path
    monkeypatch.delenv("LJPERF_CALIBRATION")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert calibration_folder() == tmp_path / "ljperf" / "calibration"


def test_a_device_whose_name_is_no_file_name_has_a_file(tmp_path: Path) -> None:
    assert calibration_path("NVIDIA GH200 480GB / odd", tmp_path).parent == tmp_path


@pytest.mark.parametrize(
    "text",
    ["[", "- 1", "device: x", written(MEASURED).replace("1.05", "many"), written(MEASURED).replace("1.05", "0.5")],
)
def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    path = calibration_path("h20-96g", tmp_path)
    path.write_text(text)
    with pytest.raises(CalibrationFileError) as caught:
        calibration_for("h20-96g", tmp_path)
    assert caught.value.location == str(path)
    assert "ljperf calibrate" in (caught.value.hint or "")


def test_an_interrupted_calibration_goes_on_where_it_was(tmp_path: Path) -> None:
    partial, done = partial_path("h20-96g", tmp_path), []

    def interrupted(configuration: Configuration) -> Measured:
        if configuration.name == "c":
            raise KeyboardInterrupt
        done.append(configuration.name)
        return measured(configuration.name)

    with pytest.raises(KeyboardInterrupt):
        list(measured_all(three(), interrupted, partial, "here"))

    def rest(configuration: Configuration) -> Measured:
        done.append(configuration.name)
        return measured(configuration.name)

    results = list(measured_all(three(), rest, partial, "here"))
    assert done == ["a", "b", "c"]
    assert [(one.name, earlier) for one, earlier in results] == [("a", True), ("b", True), ("c", False)]


def test_what_was_kept_in_another_environment_is_measured_again(tmp_path: Path) -> None:
    partial = tmp_path / "x.json"
    list(measured_all(three(), lambda one: measured(one.name), partial, "torch 1"))
    assert len(read_partial(partial, "torch 1")) == 3
    results = list(measured_all(three(), lambda one: measured(one.name), partial, "torch 2"))
    assert [earlier for _, earlier in results] == [False] * 3


@pytest.mark.parametrize("text", ["", "{", '{"environment": "here"}', '{"environment": "here", "measured": [1]}'])
def test_a_broken_partial_file_is_no_obstacle(tmp_path: Path, text: str) -> None:
    partial = tmp_path / "x.json"
    partial.write_text(text)
    assert read_partial(partial, "here") == {}


def test_constants_cover_the_worst_that_was_measured() -> None:
    rows = [measured("a", 10 * GB, 10.5 * GB), measured("b", 10 * GB, 12 * GB)]  # type: ignore[arg-type]
    alone, together = (fitted("h20-96g", rows, "here", ranks=ranks) for ranks in (1, 8))
    assert together.reserved_ratio == pytest.approx(1.2)
    assert together.context_bytes == GB
    assert alone.context_bytes == GB + COMMUNICATOR
    assert together.band == pytest.approx(1.5 / 10.5, abs=1e-3)  # what 1.2 predicts for the first


def test_without_a_measurement_there_is_nothing_to_fit() -> None:
    with pytest.raises(NothingMeasuredError):
        fitted("h20-96g", [], "here", ranks=1)


def test_a_handful_of_trainings_fills_the_device_it_is_for() -> None:
    small, large = configurations(24 * GB), configurations(141 * GB)
    assert len(small) == len({one.name for one in small}) == 6
    assert all(a.setup.micro_batch < b.setup.micro_batch for a, b in zip(small, large, strict=True))


def test_the_training_that_is_measured_trains() -> None:
    setup = TrainingSetup(sequence=16, micro_batch=2, recompute_layers=2)
    assert 4 < train(Configuration("tiny", model_named("tiny"), setup), "cpu") < 8  # ln(512) = 6.2
