"""What must be in no layer and nowhere else: secrets, caches, litter; and how large it may all be."""

import json
from collections.abc import Iterable

import pytest

from lj_image.verify.facts import Facts
from lj_image.verify.layers import SMALLEST_NEEDLE_BYTES, Needles
from lj_image.verify.subject import Subject
from lj_image.verify.verdict import Verdict

MOST_NAMED = 10
GIB = 1024**3


@pytest.mark.parametrize("place", ["layers", "history", "configuration"])
def test_secrets(place: str, subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """No secret of the build is there."""
    needles = Needles(subject.needles)
    if not needles.needles:
        short = f"its secrets are shorter than {SMALLEST_NEEDLE_BYTES} bytes, and would be found by chance"
        verdict.skip(short if any(subject.needles) else "the build was given no secret")
    match place:
        case "layers":
            found = [path for scan in facts.scans for path in scan.secrets]
        case "history":
            found = [f"step {number}" for number in _holding(needles, facts.history)]
        case _:
            image = facts.image
            said = {**image.environment, **image.labels, "entrypoint": json.dumps(image.entrypoint + image.cmd)}
            names = list(said)
            found = [names[number - 1] for number in _holding(needles, (f"{k}={v}" for k, v in said.items()))]
    _give(verdict, found, expected="no secret", kind="a secret in")


def _holding(needles: Needles, texts: Iterable[str]) -> list[int]:
    return [number for number, text in enumerate(texts, start=1) if needles.found_in(text.encode())]


def test_litter(facts: Facts, verdict: Verdict) -> None:
    """No layer of ours holds caches, credentials, left-over wheels, temporary files or bytecode."""
    found = [f"{path} ({kind})" for path, kind in sorted(facts.litter.items())]
    _give(verdict, found, expected="no litter", kind="")


def _give(verdict: Verdict, found: list[str], *, expected: str, kind: str) -> None:
    named = ", ".join(found[:MOST_NAMED]) + (f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else "")
    verdict.give(not found, expected=expected, found=f"{kind} {named}".strip() if found else expected)


def test_size(subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """The image is within its budget."""
    budget = subject.plan.release.size_budget_bytes
    if budget is None:
        verdict.skip("the image has no size budget")
    found = facts.image.size_bytes
    verdict.give(found <= budget, expected=f"at most {budget / GIB:.2f} GiB", found=f"{found / GIB:.2f} GiB")
