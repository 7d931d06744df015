"""What lint says of one place in a file, under a code that scripts and people can rely on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lj_image.errors import Location, ManifestError


class Code(StrEnum):
    """The kinds of findings; a code never changes its meaning."""

    INVALID_FILE = "invalid-file"
    """A file cannot be read, or does not fit its schema."""
    INHERITANCE = "inheritance"
    """A release inherits from itself, or from nothing."""
    RESOLUTION = "resolution"
    """A release cannot be resolved for a variant and architecture."""
    AMBIGUOUS_SPELLING = "ambiguous-spelling"
    UNKNOWN_VARIANT = "unknown-variant"
    UNKNOWN_COMPONENT = "unknown-component"
    COMPONENT_TWICE = "component-twice"
    UNLISTED_NOT_INHERITED = "unlisted-not-inherited"
    NO_SOURCE = "no-source"
    """A variant has neither a source of a promised component nor a reason to go without it."""
    SOURCE_AND_LEFT_OUT = "source-and-left-out"
    TEXT_AGAINST_TABLE = "text-against-table"
    """A text names another version than the release promises."""
    UPGRADE_WITHOUT_CHANGE = "upgrade-without-change"
    """A highlight announces an upgrade to what the release before had."""
    HIGHLIGHT_WITHOUT_CHANGE = "highlight-without-change"
    """A highlight stands for a change that there is not."""
    DOWNGRADE_WITHOUT_REASON = "downgrade-without-reason"
    REASON_WITHOUT_DOWNGRADE = "reason-without-downgrade"
    PREVIOUS_NOT_OLDER = "previous-not-older"
    INHERITS_NOT_OLDER = "inherits-not-older"
    DRIVER_ALLOWED_AND_REFUSED = "driver-allowed-and-refused"
    DRIVER_OF_OTHER_BRANCH = "driver-of-other-branch"
    DRIVER_AGAINST_REQUIRED = "driver-against-required"
    """A branch is refused or a special case, though the required driver includes it."""
    REGION_IN_PUBLIC_ADDRESS = "region-in-public-address"
    UNKNOWN_REGION = "unknown-region"
    UNKNOWN_REPOSITORY = "unknown-repository"
    """An address on a host of ours names no image of the catalog."""
    UNKNOWN_PROFILE = "unknown-profile"
    """A place names a kind of registry that there is not, or one that is like itself."""
    UNKNOWN_PLACE = "unknown-place"
    """A region is said to be the same store as none, or as one that is said to be another's."""
    REGION_TWICE = "region-twice"
    MOVING_TAG_IS_OWN = "moving-tag-is-own"
    """A tag that moves is the one of a release, which does not."""
    MOVING_TAG_SHARED = "moving-tag-shared"
    """Two variants would move the same tag, each to its own image."""
    MOVING_TAG_CANNOT_MOVE = "moving-tag-cannot-move"
    """A tag is to move at a registry where none ever does."""
    MISSING_TRANSLATION = "missing-translation"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: what was found, what to write instead, and where."""

    code: Code
    message: str
    hint: str
    location: Location | None

    def lines(self) -> tuple[str, ...]:
        """Return the lines to show: message and code, place, way out."""
        where = (f"  at {self.location}",) if self.location else ()
        return (f"{self.message} [{self.code}]", *where, *(f"  {line}" for line in self.hint.splitlines()))

    def to_json(self) -> dict[str, str | int | None]:
        """Return the finding for machines; `at` is file, line and column in one."""
        place = self.location
        return {
            "code": str(self.code),
            "message": self.message,
            "hint": self.hint,
            "at": str(place or ""),
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
        }


def findings_of(error: ManifestError, code: Code) -> Iterator[Finding]:
    """Yield an error's own finding and those that it carries."""
    yield Finding(code, error.message, error.hint or "", error.location)
    for other in error.others:
        yield from findings_of(other, code)
