"""What a shell offers after TAB, by the names of parameters, so that no command can forget it.

Loaded only while a shell asks. Whatever goes wrong offers nothing and prints nothing: it would end in a prompt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, split_arg_string

from lj_image.catalog.catalog import Catalog, Family, find_catalog, release_names

Candidates = Callable[[click.Context, str], Iterable[str]]
"""From the command so far, and the word so far, to words that may stand there."""

_RELEASE: Final = re.compile(r"(?:[a-z0-9._-]+/)?\d\d\.\d\d(?:\.\d+)?")


def attach(name: str, command: click.Command) -> None:
    """Let each parameter of a command be completed by what it stands for."""
    for parameter in command.params:
        own = (name, parameter.name or "")
        candidates = OF_A_COMMAND[own] if own in OF_A_COMMAND else BY_PARAMETER.get(own[1])
        if candidates is not None:
            parameter.shell_complete = partial(_complete, candidates)  # type: ignore[method-assign]


def _complete(candidates: Candidates, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    try:
        return [CompletionItem(word) for word in candidates(ctx, incomplete) if word.startswith(incomplete)]
    except Exception:  # of a broken catalog, too: the command itself will tell it
        return []


def images(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer images that have releases."""
    return _catalog(ctx).family_names


def releases(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer releases; with their image where several have it, or where an image is begun already."""
    catalog = _catalog(ctx)
    having = [(image, name) for image in catalog.family_names for name in release_names(catalog.root / image)]
    names = [name for _, name in having]
    begun = incomplete and not incomplete[0].isdigit()
    for image, name in having:
        yield f"{image}/{name}" if begun or names.count(name) > 1 else name


def variants(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer the variants of the release that is named, or of all images."""
    return dict.fromkeys(name for family in _families(ctx) for name in family.file.variants)


def regions(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer the regions that a release is published to, and all of them."""
    return dict.fromkeys(
        ("all", *(name for family in _families(ctx) for name in family.file.endpoints.vpc.region_names))
    )


def components(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer components; a release that is named offers those it has."""
    return _versions(ctx, all_of_family=False)


def listed_components(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer a further component for `a,b,`."""
    written, comma, _ = incomplete.rpartition(",")
    for component in components(ctx, incomplete):
        if component not in written.split(","):
            yield f"{written}{comma}{component}"


def versions(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Offer `component=version`, with the version of now to be edited."""
    for component, version in _versions(ctx, all_of_family=True).items():
        yield f"{component}={version or ''}"


def distributions(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer what the locks of the release hold."""
    named = _release_named(ctx)
    locks = (lock for family in _families(ctx) for lock in sorted((family.folder / "locks").glob("*.txt")))
    of_release = (lock for lock in locks if named is None or lock.name.startswith(f"{named.rpartition('/')[2]}-"))
    found = (name for lock in of_release for name in re.findall(r"^([\w.-]+)==", lock.read_text(), re.MULTILINE))
    return dict.fromkeys(found)


def platforms(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer the platforms that images are made for."""
    return ("linux/amd64", "linux/arm64")


def languages(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer the languages of the family's notes."""
    known = (family.file.notes.languages if family.file.notes else () for family in _families(ctx))
    return dict.fromkeys(language for some in known for language in some)


def outputs(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Offer the transports of `build --output`; what follows the colon is a path."""
    return ("engine", "oci:", "oci-archive:", "docker-archive:")


BY_PARAMETER: Final[dict[str, Candidates]] = {
    "release": releases,
    "subject": releases,
    "before": releases,
    "after": releases,
    "previous": releases,
    "image": images,
    "variant": variants,
    "regions": regions,
    "only": listed_components,
    "sets": versions,
    "pairs": versions,
    "upgrades": distributions,
    "platform": platforms,
    "outputs": outputs,
    "language": languages,
}
OF_A_COMMAND: Final[dict[tuple[str, str], Candidates | None]] = {
    ("new", "release"): None,  # the one that is not there yet
    ("why", "name"): distributions,
}
"""Parameters that mean something else in one command."""


def _catalog(ctx: click.Context) -> Catalog:
    return find_catalog(Path.cwd(), ctx.find_root().params.get("images"))


def _families(ctx: click.Context) -> list[Family]:
    """Return the family of the release that is named, or all."""
    catalog, named = _catalog(ctx), _release_named(ctx)
    if named is not None:
        return [catalog.find(named)[0]]
    return [catalog.family(name) for name in catalog.family_names]


def _release_named(ctx: click.Context) -> str | None:
    """Return the release in the command so far; click forgets it when the word before TAB is an option's name."""
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
    known = (ctx.params.get(name) for name in ("release", "subject", "before"))
    return next((word for word in (*known, *words) if isinstance(word, str) and _RELEASE.fullmatch(word)), None)


def _versions(ctx: click.Context, *, all_of_family: bool) -> dict[str, str | None]:
    from lj_image.catalog.promises import promises

    named = _release_named(ctx)
    if named is None:
        return {name: None for family in _families(ctx) for name in family.file.components}
    family, release = _catalog(ctx).find(named)
    chain, asked = family.chain(release), ctx.params.get("variant")
    chosen = (asked,) if asked in family.file.variants else tuple(family.file.variants)
    found = {
        name: item.promise.version for variant in chosen for name, item in promises(family, chain, variant).items()
    }
    found |= {name: item.promise.version for name, item in promises(family, chain, asked).items()}
    return {name: found.get(name) for name in family.file.components if all_of_family or name in found}
