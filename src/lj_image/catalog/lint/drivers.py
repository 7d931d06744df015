"""Driver branches that contradict one another, as those of published notes do."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog import schema
from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.subject import FileSubject, ReleaseSubject
from lj_image.catalog.manifest_facts import driver_of
from lj_image.catalog.versions import leading_numbers


def driver_lists(subject: FileSubject) -> Iterator[Finding]:
    """Find branches that are both allowed and refused, and versions that are not of their branch."""
    driver, document = subject.entry.file.driver, subject.entry.document
    if not isinstance(driver, schema.DriverEntry):
        return
    for position, branch in enumerate(driver.refused):
        if branch in driver.data_centre:
            yield Finding(
                Code.DRIVER_ALLOWED_AND_REFUSED,
                f"{branch} is refused, but data-centre GPUs may use it from {driver.data_centre[branch]} on",
                f"keep {branch} in one of `data_centre` and `refused`",
                document.place_of(("driver", "refused", position)),
            )
    for branch, version in driver.data_centre.items():
        if leading_numbers(version)[:1] != _number(branch):
            yield Finding(
                Code.DRIVER_OF_OTHER_BRANCH,
                f"{version} is no driver of {branch}",
                f"write the least version {branch[1:]}.… of that branch, or name it R{version.partition('.')[0]}",
                document.place_of(("driver", "data_centre", branch)),
            )


def driver_against_required(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find branches that are refused or special cases, although every driver of theirs is new enough."""
    own, driver = subject.entry.file.driver, driver_of(subject.chain)
    if own is None or driver is None:
        return
    required = leading_numbers(driver.requires.removeprefix(">="))
    for key, branches in (("refused", driver.refused), ("data_centre", [name for name, _ in driver.data_centre])):
        for position, branch in enumerate(branches):
            if _number(branch) >= required:
                part = position if key == "refused" else branch
                yield Finding(
                    Code.DRIVER_AGAINST_REQUIRED,
                    f"{branch} is under `{key}`, but the release runs with every driver {driver.requires}",
                    f"take {branch} out of `{key}`, or correct `requires`",
                    subject.entry.document.place_of(("driver", key, part)),
                )


def _number(branch: str) -> tuple[int, ...]:
    return leading_numbers(branch[1:])
