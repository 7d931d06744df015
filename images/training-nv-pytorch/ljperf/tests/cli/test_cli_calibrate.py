"""`ljperf calibrate` with and without a GPU."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from ljperf.cli.calibrate import command
from ljperf.devices import device_named
from ljperf.memory import on_device
from ljperf.memory.calibration import calibration_for
from ljperf.memory.measuring import Configuration, Measured


def calibrate(*options: str) -> Result:
    return CliRunner().invoke(command, options, standalone_mode=False)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that takes 5% more than its tensors, and a gigabyte beside."""

    def measure(configuration: Configuration) -> Measured:
        return Measured(configuration.name, 10**10, 105 * 10**8, 10**9, 10**10)

    monkeypatch.setattr("ljperf.devices.found", lambda: device_named("h20-96g"))
    monkeypatch.setattr(on_device, "measure", measure)
    monkeypatch.setattr(on_device, "environment", lambda: "a stand-in")
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def test_without_a_gpu_there_is_nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ljperf.devices.found", lambda: None)
    error = calibrate().exception
    assert getattr(error, "exit_code", None) == 1
    assert "--model-only" in (getattr(error, "hint", None) or "")


def test_what_a_cpu_can_check_is_the_count_of_bytes() -> None:
    result = calibrate("--model-only")
    assert result.exception is None, result.exception
    assert "no constant was measured" in result.output


@pytest.mark.usefixtures("gpu")
def test_measured_constants_are_what_the_plan_uses_from_then_on(tmp_path: Path) -> None:
    result = calibrate("--into", str(tmp_path))
    assert result.return_value == 0, result.exception
    calibration = calibration_for("h20-96g", tmp_path)
    assert calibration.measured
    assert calibration.reserved_ratio == pytest.approx(1.05)
    assert "one rank" in calibration.source
    assert [path.name for path in tmp_path.iterdir()] == ["h20-96g.yaml"]


@pytest.mark.usefixtures("gpu")
def test_after_an_interrupt_only_the_rest_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = on_device.measure, []

    def interrupted(configuration: Configuration) -> Measured:
        calls.append(configuration.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(configuration)

    monkeypatch.setattr(on_device, "measure", interrupted)
    assert isinstance(calibrate("--into", str(tmp_path)).exception, click.Abort)  # `main` makes it exit code 130
    result = calibrate("--into", str(tmp_path))
    assert result.return_value == 0
    assert result.output.count("kept from before") == 2
    assert len(calls) == 7  # six, and the third one twice
