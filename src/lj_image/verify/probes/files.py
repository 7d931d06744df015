"""Trees of the image's folder: the digest of each file, and whether it can be executed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lj_image.catalog.release import Component, FilesSource
from lj_image.plan import tree_files
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe

MOST_NAMED = 5
"""A message names so many files; the number says the rest."""


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask for the state of each file of the tree."""
    return {"files": {"op": "files", "paths": list(_expected(component))}}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Compare each file with the one in the tree."""
    answer = answers["files"]
    if answer.error is not None:
        return Finding(component.version, None, kept=False, message=answer.error)
    expected = _expected(component)
    wrong = [reason for path, file in expected.items() if (reason := _difference(path, file, answer.value[path]))]
    return finding_of(component, wrong, len(expected))


def finding_of(component: Component, wrong: list[str], number: int) -> Finding:
    """Return the finding about a component whose files prove its version."""
    if not wrong:
        return Finding(component.version, component.version, kept=True, message=f"{number} files compared")
    more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return Finding(component.version, "other files", kept=False, message="; ".join(wrong[:MOST_NAMED]) + more)


def _expected(component: Component) -> dict[str, Path]:
    assert isinstance(component.source, FilesSource)
    tree, root = component.source.tree, PurePosixPath(component.source.path)
    return {str(root / path.relative_to(tree).as_posix()): path for path in tree_files(tree)}


def _difference(path: str, file: Path, found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return f"{path} is missing"
    if found["sha256"] != hashlib.sha256(file.read_bytes()).hexdigest():
        return f"{path} has other content"
    # A checkout keeps only this bit of a mode; the others are the umask of whoever made it.
    if bool(found["mode"] & 0o100) != bool(file.stat().st_mode & 0o100):
        return f"{path} has mode {found['mode']:04o}"
    return None


PROBE = Probe(ask, read)
