"""`python -m bench cli|build [--json FILE]`: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from bench import build, cli

BENCHES = {"cli": cli.figures, "build": build.figures}


def main() -> None:
    """Run one bench and show each figure as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("bench", choices=sorted(BENCHES))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, Python {sys.version.split()[0]}")
    figures = []
    for figure in BENCHES[options.bench]():
        figures.append(figure)
        sides = ", ".join(f"{side} {value:.3f}" for side, value in figure.sides.items())
        mark = "" if figure.mark is None else f" (mark: at most {figure.mark:g})"
        print(f"{figure.name:<26} {figure.ratio:6.2f}{mark}  [{sides}]  {figure.note}", flush=True)
    if options.json:
        partial = options.json.with_name(f".{options.json.name}.partial")
        partial.write_text(json.dumps([figure.to_json() for figure in figures], indent=2) + "\n")
        partial.replace(options.json)


main()
