"""Two constants of a device type that no formula gives: what the allocator reserves beyond what tensors take, and
what context and communicator take beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ljperf.errors import LjperfError

FOLDER_VARIABLE = "LJPERF_CALIBRATION"


class CalibrationFileError(LjperfError):
    """A calibration that cannot be read."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The two constants, how sure they are, and where they are from."""

    device: str
    """The type it holds for, or `any`."""
    reserved_ratio: float
    """Bytes reserved per byte that tensors take at the peak."""
    context_bytes: int
    """Driver context, kernels, libraries' workspaces, communicator."""
    band: float
    """The truth is expected within plus or minus this part of the prediction."""
    measured: bool
    """On such a device, by `ljperf calibrate`; else published figures of others."""
    source: str
    """Where and when, for people."""

    def needed(self, allocated: int) -> int:
        """Bytes that the device needs for tensors of `allocated` bytes."""
        return round(allocated * self.reserved_ratio) + self.context_bytes


def calibration_for(device: str, folder: Path | None = None) -> Calibration:
    """The constants for a device type: measured by the user, else shipped for it, else the published default.

    `folder` is where `ljperf calibrate` writes. Raises CalibrationFileError for a broken file there.
    """
    measured = calibration_path(device, folder)
    if measured.is_file():
        return _read(measured.read_text(encoding="utf-8"), str(measured))
    shipped = {calibration.device: calibration for calibration in _shipped()}
    return shipped.get(device, shipped["any"])


def calibration_path(device: str, folder: Path | None = None) -> Path:
    """The file for a device type's own constants."""
    return (folder or calibration_folder()) / f"{re.sub('[^a-z0-9.-]+', '-', device.lower())}.yaml"


def calibration_folder() -> Path:
    """$LJPERF_CALIBRATION, else `ljperf/calibration` among the user's data."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "ljperf" / "calibration"


def written(calibration: Calibration) -> str:
    """The calibration as the text of its file."""
    import yaml

    rows = {field: getattr(calibration, field) for field in Calibration.__dataclass_fields__}
    return f"# Made by: ljperf calibrate\n{yaml.safe_dump(rows, sort_keys=False, width=110)}"


def _shipped() -> Iterator[Calibration]:
    for file in files("ljperf.memory").joinpath("data").iterdir():
        if file.name.endswith(".yaml"):
            yield _read(file.read_text(encoding="utf-8"), file.name)


def _read(text: str, name: str) -> Calibration:
    import yaml

    hint = "delete it, or make it again: ljperf calibrate"
    try:
        row = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CalibrationFileError(f"not YAML: {error}", hint=hint, location=name) from None
    if not isinstance(row, Mapping):
        raise CalibrationFileError("no calibration", hint=hint, location=name)
    return _checked(row, name, hint)


def _checked(row: Mapping[str, Any], name: str, hint: str) -> Calibration:
    try:
        result = Calibration(
            device=str(row["device"]),
            reserved_ratio=float(row["reserved_ratio"]),
            context_bytes=int(row["context_bytes"]),
            band=float(row["band"]),
            measured=bool(row["measured"]),
            source=str(row["source"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CalibrationFileError(f"a field is missing or no number: {error}", hint=hint, location=name) from None
    if result.reserved_ratio < 1 or result.context_bytes < 0 or not 0 <= result.band < 1:
        raise CalibrationFileError("reserved_ratio, context_bytes or band cannot be", hint=hint, location=name)
    return result
