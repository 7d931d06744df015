"""Proves one image: gathers what is inside, runs the generated tests and the image's own, and returns the report."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest
from docker import APIClient

from lj_image.errors import VerificationError
from lj_image.verify import fixtures
from lj_image.verify.facts import Progress, gathered
from lj_image.verify.plugin import SUITE, VerifyPlugin
from lj_image.verify.report import VerifyReport, write_junit
from lj_image.verify.subject import Subject

_OPTIONS: Final = (
    *("-c", os.devnull, "--rootdir", str(SUITE), "--confcutdir", str(SUITE)),
    *("-q", "--no-header", "--no-summary", "--color=no", "--tb=short", "--strict-markers"),
    *("--import-mode=importlib", "--continue-on-collection-errors", "--capture=sys"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:warnings", "-p", "no:doctest"),
)
_RAN: Final = frozenset(
    (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.INTERRUPTED)
)


def _silent(message: str) -> None:
    """Show no progress."""


def verify(
    subject: Subject,
    *,
    api: APIClient,
    cache_dir: Path,
    junit: Path | None = None,
    progress: Progress = _silent,
) -> VerifyReport:
    """Hold an image against its promises.

    What is broken stands in the report. Raises VerificationError when the image is absent or cannot be asked at all,
    and EngineError when the engine goes away.
    """
    started = time.monotonic()
    with gathered(subject, api, cache_dir, progress) as (facts, container):
        progress("comparing")
        plugin = VerifyPlugin(subject, facts, container)
        _run_tests(plugin, subject.tests)
    report = VerifyReport(facts.image.id, tuple(plugin.checks), time.monotonic() - started)
    if junit is not None:
        write_junit(report, junit, suite=f"{subject.plan.release.image}:{subject.plan.tag}")
    return report


def _run_tests(plugin: VerifyPlugin, own_tests: Path | None) -> None:
    folders = [str(SUITE), *([str(own_tests)] if own_tests is not None and own_tests.is_dir() else [])]
    said = io.StringIO()
    with _isolated(), redirect_stdout(said), redirect_stderr(said):
        code = pytest.main([*_OPTIONS, *folders], plugins=[plugin, fixtures])
    if plugin.interrupted:
        raise KeyboardInterrupt
    if code not in _RAN:
        raise VerificationError(
            f"the tests could not run (pytest ended with {int(code)})", hint=said.getvalue().strip()[-2000:] or None
        )


@contextmanager
def _isolated() -> Iterator[None]:
    """Keep the user's pytest settings and installed plugins out, and compiled files out of the images' folders."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    before = sys.dont_write_bytecode
    with patch.dict(os.environ, {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, clear=True):
        sys.dont_write_bytecode = True
        try:
            yield
        finally:
            sys.dont_write_bytecode = before
