"""What a person names -> the two things to compare: releases, releases at a revision, images, archives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import EngineError, LjImageError, ManifestError, UsageError
from lj_image.oci.layout import LAYOUT_FILE
from lj_image.release.diff.compare import Diff, diff
from lj_image.release.diff.contents import Contents, Kind
from lj_image.release.diff.releases import contents_of_release

if TYPE_CHECKING:
    import docker

_RELEASE: Final = re.compile(r"(?:[a-z0-9][a-z0-9._-]*/)?\d[\w.]*")
"""Such as 25.02 or training-nv-pytorch/25.02; an image of that name would have a tag."""
_ARCHIVE_ENDINGS: Final = (".tar", ".tar.gz", ".tgz", ".oci", "/")
_FORMS: Final = "a release (25.02, or 25.02@REVISION), an image of the engine (name:tag), or the path of an archive"


class Resolver(Protocol):
    """The part of `catalog.resolve.resolve` that is asked for here."""

    def __call__(  # noqa: D102
        self,
        name: str,
        variant: str | None,
        /,
        *,
        platform: str | None,
        only_configured: bool,
        base_known: bool,
        overridden: Mapping[str, str] | None = None,
    ) -> Release: ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What comparing stands on; nothing of it is touched before it is needed."""

    config: Config
    resolve: Resolver
    """Of the catalog in the working tree."""
    images: Callable[[], Path]
    """The folder of that catalog."""
    connect: Callable[[], docker.APIClient]
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to compare."""

    variant: str | None = None
    platform: str | None = None
    files: bool = False
    dockerfile: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """One argument, understood."""

    kind: Kind
    name: str
    revision: str | None = None


def diff_named(before: str, after: str, ground: Ground, wanted: Wanted) -> Diff:
    """Compare two things as a person names them; see `named` for how.

    Raises UsageError for what is nowhere, ManifestError and LockError for faults of a release, ArtifactError for a
    damaged archive, EngineError where an engine is needed and does not answer.
    """
    one, other = named(before), named(after)
    with ExitStack() as stack:
        read = {item: _read(item, ground, wanted) for item in (one, other) if item.kind != "release"}
        variant = wanted.variant or next((found.variant for found in read.values() if found.variant), None)
        releases = _resolved((one, other), variant, ground, wanted, stack)
        sides = [read.get(item) or releases[item] for item in (one, other)]
        return diff(*sides, files=wanted.files, dockerfile=wanted.dockerfile)


def diff_releases(
    before: Release, after: Release, cache_dir: Path, *, files: bool = False, dockerfile: bool = False
) -> Diff:
    """Compare two resolved releases, as they lie in the catalog; raises LockError for a damaged lock."""
    old, new = contents_of_release(before, cache_dir), contents_of_release(after, cache_dir)
    return diff(old, new, files=files, dockerfile=dockerfile)


def named(text: str) -> Named:
    """Understand one argument: a path, a reference, an id, a release, or a release at a revision.

    >>> named("25.02@main"), named("team/image:25.02").kind, named("./saved.tar").kind
    (Named(kind='release', name='25.02', revision='main'), 'image', 'archive')
    """
    if not text:
        raise UsageError("nothing is named", hint=f"name {_FORMS}")
    name, at, revision = text.partition("@")
    if at and _RELEASE.fullmatch(name) and not revision.startswith("sha256:"):
        return Named("release", name, revision)
    if text.startswith(("./", "../", "/", "~/")) or text.endswith(_ARCHIVE_ENDINGS):
        return Named("archive", text)
    if (Path(text) / LAYOUT_FILE).is_file():  # build/25.02, say, which an image named build might have as a release
        return Named("archive", text)
    if _RELEASE.fullmatch(text):
        return Named("release", text)
    if ":" not in text and Path(text).exists():
        return Named("archive", text)
    return Named("image", text)


def release_before(after: str, ground: Ground, wanted: Wanted) -> str:
    """Return the name of the release that `after` is a difference to; raises UsageError where there is none."""
    item = named(after)
    if item.kind != "release" or item.revision is not None:
        raise UsageError(f"nothing to compare {after} with", hint=f"name a second one: {_FORMS}")
    release = _release(ground.resolve, item.name, wanted.variant, wanted.platform)
    if release.inherits is None:
        raise UsageError(
            f"{release.image} {release.name} inherits from no release", hint=f"name what to compare it with: {_FORMS}"
        )
    return f"{release.image}/{release.inherits}"


def _read(item: Named, ground: Ground, wanted: Wanted) -> Contents:
    """Read an image or an archive."""
    from lj_image.release.diff.archives import contents_of_archive
    from lj_image.release.diff.claims import Claims

    claims = Claims(ground.resolve, ground.config.cache_dir)
    if item.kind == "archive":
        path = Path(item.name).expanduser()
        if not path.exists():
            raise UsageError(f"no file {item.name}", hint=f"name {_FORMS}")
        return contents_of_archive(path, ground.config.cache_dir, claims, platform=wanted.platform)
    from lj_image.release.assembled import cached_layout
    from lj_image.release.diff.images import contents_of_image

    layout = cached_layout(item.name, ground.config)
    try:
        found = contents_of_image(ground.connect(), item.name, ground.config.cache_dir, claims, say=ground.say)
    except EngineError:
        if layout is None:
            raise
        found = None
    if found is None and layout is not None:
        ground.say(f"{item.name}: as it was assembled, from the cache")
        return contents_of_archive(
            layout, ground.config.cache_dir, claims, platform=wanted.platform, reference=item.name
        )
    if found is None:
        raise UsageError(f"the engine has no image {item.name}", hint=f"pull it, or name {_FORMS}")
    return found


def _resolved(
    items: tuple[Named, ...], variant: str | None, ground: Ground, wanted: Wanted, stack: ExitStack
) -> dict[Named, Contents]:
    """Read the releases among the items, all in one variant."""
    resolvers = {item: _resolver(item, ground, stack) for item in items if item.kind == "release"}
    found = _in_one_variant(resolvers, variant, wanted.platform)
    cache_dir = ground.config.cache_dir
    return {item: contents_of_release(found[item], cache_dir, revision=item.revision) for item in found}


def _in_one_variant(
    resolvers: dict[Named, Resolver], variant: str | None, platform: str | None
) -> dict[Named, Release]:
    """Resolve each release; without a variant, in the one that the newer one takes by itself, else the older one's.

    Raises the first refusal when they have none in common.
    """
    default = _in_one_family(resolvers, variant, platform)
    candidates = tuple(dict.fromkeys(release.variant for release in reversed(default.values())))
    if len(candidates) < 2:
        return default
    refusal: ManifestError | None = None
    common = [name for name in candidates if all(name in release.offered for release in default.values())]
    for candidate in common or candidates:
        try:
            return {
                item: _release(resolvers[item], f"{release.image}/{release.name}", candidate, platform)
                for item, release in default.items()
            }
        except ManifestError as error:
            refusal = refusal or error
    assert refusal is not None  # two variants were tried
    raise refusal


def _in_one_family(resolvers: dict[Named, Resolver], variant: str | None, platform: str | None) -> dict[Named, Release]:
    """Resolve each release; a name that several families have is meant in the family of the other one."""
    family = next((item.name.rpartition("/")[0] for item in resolvers if "/" in item.name), None)
    found: dict[Named, Release] = {}
    refusals: dict[Named, UsageError] = {}
    for item, resolve in resolvers.items():
        try:
            found[item] = _release(resolve, _full_name(item.name, family), variant, platform)
        except UsageError as error:
            refusals[item] = error
    family = next((release.image for release in found.values()), None)
    for item, refusal in refusals.items():
        if family is None or "/" in item.name:
            raise refusal
        found[item] = _release(resolvers[item], _full_name(item.name, family), variant, platform)
    return {item: found[item] for item in resolvers}


def _full_name(name: str, family: str | None) -> str:
    return f"{family}/{name}" if family and "/" not in name else name


def _release(resolve: Resolver, name: str, variant: str | None, platform: str | None) -> Release:
    """Resolve a release; one whose base nobody has asked yet has components all the same."""
    try:
        return resolve(name, variant, platform=platform, only_configured=False, base_known=True)
    except ManifestError as error:
        try:
            return resolve(name, variant, platform=platform, only_configured=False, base_known=False)
        except LjImageError:
            raise error from None


def _resolver(item: Named, ground: Ground, stack: ExitStack) -> Resolver:
    """Return what resolves a release: the catalog of the working tree, or that of a revision."""
    if item.revision is None:
        return ground.resolve
    from lj_image.release.diff.revisions import catalog_at, resolver_in

    images = stack.enter_context(catalog_at(ground.images(), item.revision))
    return resolver_in(images, ground.config)
