"""Two builds of one release wait for each other, and only as long as one of them runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from filelock import FileLock

from lj_image.errors import BuildError
from lj_image.release import build as module
from lj_image.release.build import Options, build
from lj_image.release.record import Records


def test_a_build_that_failed_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Any:
        raise BuildError("a step failed")

    monkeypatch.setattr(module, "_build_alone", fails)
    records = Records(tmp_path, "tiny")
    plan: Any = SimpleNamespace(release=SimpleNamespace(key="25.02-open"))
    workshop: Any = SimpleNamespace(records=records, say=print)
    with pytest.raises(BuildError) as failure:  # which holds on to everything that the build had
        build(plan, Options(), workshop, cast("Any", None))
    FileLock(records.folder / ".25.02-open.build.lock").acquire(timeout=0)
    assert failure.value.exit_code == 1
