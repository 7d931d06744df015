"""`python -m bench all|cli|build|oci|push [--json FILE] [--quick]`: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import compileall
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench import build, cli, machine, oci, push
from bench.measure import Figure
from bench.peers import ROOT

Benches = Mapping[str, Callable[[], Iterator[Figure]]]
BENCHES: Benches = {"cli": cli.figures, "build": build.figures, "oci": oci.figures, "push": push.figures}


def main() -> None:
    """Run one bench or all, and show each figure as soon as it is there."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("bench", choices=[*BENCHES, "all"])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="oci, push: tiny sizes, once, to see that everything runs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that engines are stopped and folders removed
    quick = {"oci": partial(oci.figures, quick=True), "push": partial(push.figures, quick=True)}
    benches: Benches = {**BENCHES, **(quick if options.quick else {})}
    # As an installed package has it; a checkout that was edited would be compiled by every command.
    compileall.compile_dir(ROOT / "src", quiet=1)
    print(machine.description())
    print(f"{'figure':<26} {'ratio':>8}  {'mark':<8} sides (seconds, MiB or bytes)", flush=True)
    figures = []
    for figure in _figures(benches if options.bench == "all" else {options.bench: benches[options.bench]}):
        figures.append(figure)
        print(line(figure), flush=True)
    if options.json:
        _write(options.json, figures)


def _figures(benches: Benches) -> Iterator[Figure]:
    """Yield the figures of some benches; of several, one that cannot run here is skipped by name."""
    for name, figures in benches.items():
        try:
            yield from figures()
        except RuntimeError as error:
            if len(benches) == 1:
                raise
            print(f"skipped: the rest of {name} ({error})", file=sys.stderr)


def line(figure: Figure) -> str:
    """Return a figure's row."""
    sides = ", ".join(
        f"{side} {value:,.0f}" if value > 1e4 else f"{side} {value:.3f}" for side, value in figure.sides.items()
    )
    mark = "" if figure.mark is None else f"{'≥' if figure.at_least else '≤'} {figure.mark:.3g}"
    missed = "" if figure.is_met else "  MISSED"
    return f"{figure.name:<26} {figure.ratio:>8.3g}  {mark:<8} {sides}{missed}  ({figure.note})"


def _write(target: Path, figures: Sequence[Figure]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial_file = target.with_name(f".{target.name}.partial")
    partial_file.write_text(json.dumps([figure.to_json() for figure in figures], indent=2) + "\n")
    partial_file.replace(target)


if __name__ == "__main__":
    main()
