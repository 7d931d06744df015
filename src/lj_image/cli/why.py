"""`lj-image why`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.lock.why import Explanation, Link


@click.command("why")
@click.argument("release")
@click.argument("name")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--all", "every", is_flag=True, help="Show every chain, not only the shortest from each component.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str, name: str, variant: str | None, every: bool, as_json: bool) -> None:
    """Say why a distribution is in an image: what requires it, and which component brings that.

    How each one asks for the next is read from the files in the cache; `lj-image fetch` brings them there.

    \b
    lj-image why 25.02 numpy
    lj-image why 25.02 sympy --variant open --all
    """
    from lj_image.lock.why import why

    resolved = app.release(release, variant)
    lock = app.lock(resolved)
    explanations = why(resolved, lock, name, app.store, every=every)
    if as_json:
        app.print_json({"release": lock.key, "explanations": [item.to_json() for item in explanations]})
        return
    for line in (line for item in explanations for line in lines_of(item)):
        app.print(line)


def lines_of(item: Explanation) -> Iterator[str]:
    """Yield an explanation as a tree of plain text: a component, and below it the way to the distribution."""
    layer = f"  [layer of {item.component}]" if item.origin == "lock" else ""
    yield f"{item.name} {item.version}{layer}"
    if item.remark:
        yield f"  {item.remark}"
    for component in dict.fromkeys(chain.component for chain in item.chains):
        ways = [chain.links for chain in item.chains if chain.component == component and len(chain.links) > 1]
        if ways:  # of a chain of one the remark has said all
            yield f"component {component}"
            yield from _branches(ways, "")
    if item.more:
        yield "… and more chains"


def _branches(ways: Sequence[Sequence[Link]], indent: str) -> Iterator[str]:
    """Draw ways as one tree: what they begin with in common is drawn once."""
    heads = list(dict.fromkeys(way[0] for way in ways))
    for head in heads:
        last = head == heads[-1]
        yield f"{indent}{'└── ' if last else '├── '}{_label(head)}"
        rest = [way[1:] for way in ways if way[0] == head and len(way) > 1]
        yield from _branches(rest, indent + ("    " if last else "│   "))


def _label(link: Link) -> str:
    asked = f"  ({link.requirement})" if link.requirement else ""
    extras = f"[{','.join(link.extras)}]" if link.extras and link.requirement is None else ""
    by_extra = f"  by the extra {' or '.join(link.extras)}" if link.extras and link.requirement else ""
    overruled = "  overruled by the release" if not link.followed else ""
    return f"{link.name}{extras} {link.version}{asked}{by_extra}{overruled}"
