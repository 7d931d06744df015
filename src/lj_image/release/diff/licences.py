"""The licence that a distribution states of itself, short, and remembered by the wheel that states it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from lj_image.lock.lock import Artifact
from lj_image.whole import write_whole

NONE_STATED: Final = ""
"""What stands for the licence of a distribution that states none."""
_LONGEST: Final = 80
"""Some distributions give the whole text as their licence; a longer line is no name."""
_SAME: Final[Mapping[str, str]] = {
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "apache software": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "bsd 3-clause": "BSD-3-Clause",
    "3-clause bsd": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "modified bsd": "BSD-3-Clause",
    "bsd 2-clause": "BSD-2-Clause",
    "2-clause bsd": "BSD-2-Clause",
    "simplified bsd": "BSD-2-Clause",
    "expat": "MIT",
    "isc license (iscl)": "ISC",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "mpl 2.0": "MPL-2.0",
    "python software foundation": "PSF-2.0",
    "psf": "PSF-2.0",
    "psfl": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
"""What people write, without `the` before and `license` after it -> SPDX identifier."""


def licence_of(metadata: str) -> str:
    """Return the licence in the text of a METADATA file; NONE_STATED when it states none.

    Core metadata 2.4: License-Expression, before it License, before that classifiers.
    """
    from email.parser import HeaderParser  # late: comparing names needs none of it

    headers = HeaderParser().parsestr(metadata, headersonly=True)
    expression = str(headers.get("License-Expression", "")).strip()
    if expression:
        return expression
    classifiers = [str(item) for item in headers.get_all("Classifier", ()) if str(item).startswith("License ::")]
    classified = " OR ".join(sorted({_short(item) for item in classifiers} - {"OSI Approved"}))
    text = str(headers.get("License", "")).strip()
    is_name = text and "\n" not in text and len(text) <= _LONGEST and text.upper() != "UNKNOWN"
    if is_name or not (text and text.upper() != "UNKNOWN"):
        return text if is_name else classified
    return classified or text.splitlines()[0].strip()[:_LONGEST]


def _short(classifier: str) -> str:
    return classifier.rpartition("::")[2].strip()


def same_licence(one: str, other: str) -> bool:
    """Say whether two names mean the same licence: `MIT License` and `MIT`."""
    return _spdx(one) == _spdx(other)


def _spdx(name: str) -> str:
    folded = " ".join(name.casefold().split()).removeprefix("the ")
    bare = re.sub(r" ?licen[cs]e$", "", folded)
    return _SAME.get(folded, _SAME.get(bare, bare)).casefold()


class LicenceMemory:
    """Licences of wheels by sha256, in one file: opening hundreds of wheels at each comparison would be slow."""

    def __init__(self, cache_dir: Path) -> None:
        self._file = cache_dir / "licences.json"

    def of(self, artifacts: Iterable[Artifact], read: Callable[[Artifact], str | None]) -> dict[str, str]:
        """Return sha256 -> licence, through `read` for those not remembered; without those that it knows not."""
        known = self._known()
        wanted = {artifact.sha256: artifact for artifact in artifacts}
        fresh = {sha256: read(item) for sha256, item in wanted.items() if sha256 not in known}
        learnt = {sha256: licence for sha256, licence in fresh.items() if licence is not None}
        if learnt:
            known |= learnt
            self._keep(known)
        return {sha256: known[sha256] for sha256 in wanted if sha256 in known}

    def _known(self) -> dict[str, str]:
        with suppress(OSError, ValueError):
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            if isinstance(kept, dict) and all(isinstance(item, str) for item in kept.values()):
                return kept
        return {}

    def _keep(self, licences: Mapping[str, str]) -> None:
        """Write the file by rename; a cache that cannot be written to is done without."""
        with suppress(OSError):
            write_whole(self._file, json.dumps(dict(licences), indent=0, sort_keys=True))
