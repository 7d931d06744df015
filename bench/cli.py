"""Start-up is a feature: commands that need no engine, against an interpreter that does nothing.

The first run of each, which is not counted, leaves in the cache what later ones need not read again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, against

RUNS = 31
COMMANDS = {
    "cli_help": (["--help"], 6),
    "cli_list": (["list"], 12),
    "cli_render": (["render", "25.02", "--variant", "open"], 20),
    "cli_notes": (["notes", "25.02", "--variant", "open"], 25),
    "cli_notes_chain": (["notes", "25.10", "--variant", "serverless"], 25),
    "cli_diff": (["diff", "25.02", "25.03"], 25),
    "cli_diff_locks": (["diff", "25.07", "25.08", "--variant", "open"], 25),
}


def figures() -> Iterator[Figure]:
    """Yield a figure for each command."""
    program = str(Path(sys.executable).with_name("lj-image"))
    for name, (arguments, mark) in COMMANDS.items():
        nothing = [sys.executable, "-c", "pass"]
        yield against(name, [program, *arguments], nothing, runs=RUNS, mark=mark, note="against `python -c pass`")
