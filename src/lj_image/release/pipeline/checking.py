"""The steps that need no engine: lint, and the lock. Taken in every run: to know whether they still hold costs more."""

from __future__ import annotations

from collections.abc import Iterable

from lj_image.errors import ManifestError
from lj_image.lock.lockfile import lock_path
from lj_image.plan import total_line
from lj_image.release.pipeline.files import digest_of, sha256_of
from lj_image.release.pipeline.step import Done, Step
from lj_image.release.pipeline.work import Finding, Work


def require_no_findings(findings: Iterable[Finding]) -> None:
    """Raise ManifestError with everything that lint has found."""
    errors = [ManifestError(item.message, hint=item.hint or None, location=item.location) for item in findings]
    if errors:
        first, *others = errors
        raise ManifestError(first.message, hint=first.hint, location=first.location, others=others)


def lock_step(work: Work) -> Step:
    """Return the step that holds the committed lock against the release, and makes the plan."""

    def act() -> Done:
        return Done(f"fresh; {total_line(work.plan)}")

    path = lock_path(work.release)
    return Step("lock", "is it what the release asks for?", lambda: digest_of(sha256_of(path)), act)
