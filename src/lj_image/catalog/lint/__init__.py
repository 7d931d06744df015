"""All that can be said of a catalog without a network: every file, release, variant and architecture.

A Catalog comes in, findings go out, each with a code, a place and what to write instead. `rules.py` lists the rules;
one module holds those of one subject. Never imports what needs an engine or a network.
"""

from __future__ import annotations

from lj_image.catalog.lint.check import lint
from lj_image.catalog.lint.finding import Code, Finding

__all__ = ["Code", "Finding", "lint"]
