"""How a test of ours says what was expected and what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

import pytest

from lj_image.verify.probes import Finding
from lj_image.verify.report import Outcome

NOTED: Final = "lj-image"
"""The name among a test's user properties under which its `Noted` stands."""


@dataclass(slots=True)
class Noted:
    """What a test of ours says of its check besides whether it passed."""

    component: str | None = None
    expected: str | None = None
    found: str | None = None
    message: str = ""
    outcome: Outcome | None = None
    """Where it is neither of pytest's."""


class Verdict:
    """Given to each test of ours to say what was expected and found; it ends the test when they differ."""

    def __init__(self, node: pytest.Item) -> None:
        self._noted = Noted()
        node.user_properties.append((NOTED, self._noted))

    def about(self, component: str) -> None:
        """Name the component that the check is about."""
        self._noted.component = component

    def give(self, kept: bool, *, expected: str, found: str | None, message: str = "") -> None:
        """Pass or fail with what was expected and what was found."""
        self._noted.expected, self._noted.found, self._noted.message = expected, found, message
        if not kept:
            pytest.fail(f"expected {expected}, found {found or 'nothing'}", pytrace=False)

    def give_finding(self, finding: Finding) -> None:
        """Pass, fail or leave open, as a probe has found."""
        if not finding.probed:
            self._noted.expected = finding.expected
            self.leave_open(finding.message)
        self.give(finding.kept, expected=finding.expected, found=finding.found, message=finding.message)

    def require_none(self, wrong: Iterable[str], *, expected: str) -> None:
        """Fail with all that is wrong."""
        named = tuple(wrong)
        self.give(not named, expected=expected, found="; ".join(named) or expected)

    def leave_open(self, reason: str) -> NoReturn:
        """End the test without a verdict: there is nobody to ask."""
        self._noted.outcome = "not_probed"
        self.skip(reason)

    def skip(self, reason: str) -> NoReturn:
        """End the test: it does not apply."""
        self._noted.message = reason
        pytest.skip(reason)
