"""The file of a new release: what it is for stands in it, and what it inherits, ready to be uncommented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry, shown
from lj_image.catalog.manifest_facts import driver_of
from lj_image.catalog.promises import Promised, promises
from lj_image.catalog.schema import Promise, ReleaseFile, TextEntry
from lj_image.documents.models import validate
from lj_image.documents.nodes import parse_document
from lj_image.errors import UsageError
from lj_image.manifest.scalars import version_text

_NAME: Final = re.compile(r"\d\d\.(0[1-9]|1[0-2])(\.\d+)?")


@dataclass(frozen=True, slots=True)
class NewRelease:
    """A release's file that is not written yet."""

    path: Path
    text: str
    name: str
    """As commands take it: with its image where several images have such a release."""


def new_release(catalog: Catalog, release: str, previous: str, image: str | None = None) -> NewRelease:
    """Return the file of a release that differs in nothing yet from the one before.

    Either may be written as `image/25.11`. Raises UsageError for a malformed name, an unknown or younger `previous`,
    several images to choose from, and a release that exists.
    """
    folder, _, name = release.rpartition("/")
    _require_name(name)
    family, before = catalog.find(_in_one_image(previous, image, folder))
    family.release(before)  # raises for one that does not exist
    _require_order(name, before)
    path = family.folder / "releases" / f"{name}.yaml"
    if path.exists():
        raise UsageError(f"{shown(path)} exists already", hint=f"edit it, or run: lj-image set {name} NAME=VERSION")
    text = "".join(f"{line}\n" for line in _lines(family, name, before))
    validate(parse_document(text, shown(path)), ReleaseFile)
    others = (catalog.family(other) for other in catalog.family_names if other != family.name)
    is_shared = any(name in other.release_names for other in others)
    return NewRelease(path, text, f"{family.name}/{name}" if is_shared else name)


def _in_one_image(previous: str, *images: str | None) -> str:
    folder, _, name = previous.rpartition("/")
    named = sorted({item for item in (folder, *images) if item})
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)}: two images", hint="a release inherits from one of its own image")
    return "/".join((*named, name))


def _require_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is no release", hint="write year and month: 25.02; a repaired release has a number: 25.02.1"
        )


def _require_order(name: str, previous: str) -> None:
    if _numbers(previous) >= _numbers(name):
        raise UsageError(f"{previous} is not older than {name}", hint="--from names the release before the new one")


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def _lines(family: Family, name: str, previous: str) -> Iterator[str]:
    chain = family.chain(previous)
    yield f"# {name} of {family.name}: what differs from {previous}; all else is inherited."
    yield _aside(f'release: "{name}"', "quoted: YAML reads an unquoted 25.10 as the number 25.1")
    yield _aside(f'previous: "{previous}"', "the release before, whose components and facts this one inherits")
    yield _aside('# date: "20YY-MM-DD"', "the day of its publication")
    yield from _facts(chain)
    yield "components:"
    yield "  # Uncomment what changes and write the new version; these are the inherited ones, in layer order."
    yield from _promised(promises(family, chain), family, "  # ")
    yield _aside("# unlisted: []", "inherited components that this release no longer has")
    yield from _variants(family, chain, previous)
    yield _aside("highlights: []", "lines of the notes besides versions, each as `- text` or `- {en: text, zh: text}`")
    yield _aside("fixes: []", "what was wrong before and is not any more, written likewise")


def _aside(line: str, remark: str) -> str:
    """Return a line with a remark, in the column that most remarks fit in."""
    return f"{line:<29} # {remark}"


def _facts(chain: tuple[ReleaseEntry, ...]) -> Iterator[str]:
    base: dict[str, str] = {}
    for entry in chain:
        base.update(entry.file.base)
    if base:
        values = ", ".join(f"{version_text(key)}: {_quoted(value)}" for key, value in base.items())
        yield _aside(f"# base: {{{values}}}", "which base it stands on: fills the templates of image.yaml")
    architectures = next((item.file.architectures for item in reversed(chain) if item.file.architectures), ["amd64"])
    yield _aside(f"# architectures: [{', '.join(architectures)}]", "processors that it is made for")
    driver = driver_of(chain)
    yield _aside(f"# driver: {_quoted(driver.requires if driver else '>=NNN')}", "the least driver of the host")


def _promised(promised: dict[str, Promised], family: Family, indent: str) -> Iterator[str]:
    for component in family.file.components:
        if (item := promised.get(component)) is not None:
            yield f"{indent}{version_text(component)}: {_promise(item.promise)}"


def _promise(promise: Promise) -> str:
    """Return a promise in its short form where that says all of it; a reason for a downgrade was for that release."""
    version = version_text(promise.version)
    more = [f"features: {_list(promise.features)}"] if promise.features else []
    more += [f"architectures: {_list(promise.architectures)}"] if promise.architectures else []
    return f"{{{', '.join((f'version: {version}', *more))}}}" if more else version


def _list(items: Sequence[str]) -> str:
    return json.dumps(items, ensure_ascii=False)


def _variants(family: Family, chain: tuple[ReleaseEntry, ...], previous: str) -> Iterator[str]:
    """Yield what variants have of their own; why one cannot be had is taken along, since it is not inherited."""
    general, reasons = promises(family, chain), _reasons(chain)
    own = {name: _own(general, promises(family, chain, name)) for name in family.file.variants}
    if not reasons and not any(own.values()):
        return
    yield "variants:" if reasons else "# variants:"
    for variant, promised in own.items():
        if variant in reasons:
            yield f"  {variant}:"
            yield from _unavailable(reasons[variant], f"  # as in {previous}; delete it when it can be had")
        elif promised:
            yield f"#   {variant}:"
        if promised:
            yield _aside("#     components:", "versions in this variant only")
            yield from _promised(promised, family, "#       ")


def _own(general: dict[str, Promised], in_variant: dict[str, Promised]) -> dict[str, Promised]:
    return {name: item for name, item in in_variant.items() if general.get(name) != item}


def _reasons(chain: tuple[ReleaseEntry, ...]) -> dict[str, TextEntry]:
    return {name: own.unavailable for name, own in chain[-1].file.variants.items() if own.unavailable is not None}


def _unavailable(reason: TextEntry, remark: str) -> Iterator[str]:
    if isinstance(reason, str):
        yield f"    unavailable: {_quoted(' '.join(reason.split()))}{remark}"
        return
    yield f"    unavailable:{remark}"
    yield f"      en: {_quoted(' '.join(reason.en.split()))}"
    yield f"      zh: {_quoted(' '.join(reason.zh.split()))}"


def _quoted(text: str) -> str:
    """Return a text in double quotes, which YAML reads as JSON does."""
    return json.dumps(text, ensure_ascii=False)
