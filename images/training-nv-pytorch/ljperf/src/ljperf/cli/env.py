"""`ljperf env`: what this machine and this image have."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> int:
    """Say what trains here: versions, devices, limits, hooks, and the variables that decide.

    Only variables of a list are shown, as others may be secrets. What will hurt later is a warning with the way out.
    """
    from ljperf.environment.environment import environment
    from ljperf.environment.show import shown

    found = environment()
    click.echo(json.dumps(asdict(found), indent=2) if as_json else shown(found))
    return 0
