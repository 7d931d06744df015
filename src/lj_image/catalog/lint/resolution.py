"""Every variant and architecture of a release, resolved: what cannot be had is found before anyone asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.lint.finding import Code, Finding, findings_of
from lj_image.catalog.lint.subject import ReleaseSubject, is_unavailable
from lj_image.catalog.manifest_facts import architectures_of
from lj_image.catalog.release import Platform
from lj_image.catalog.resolve import resolve_variant
from lj_image.catalog.variants import base_of_ours
from lj_image.errors import ManifestError


def sources(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find every promised component that an available variant neither has a source of nor leaves out."""
    for variant in _available(subject):
        architectures = set(_architectures(subject, variant))
        for component_id, item in subject.promised[variant].items():
            entry = subject.family.file.components[component_id]
            is_wanted = architectures & set(item.promise.architectures or entry.architectures)
            if is_wanted and variant not in entry.sources and variant not in entry.left_out:
                yield Finding(
                    Code.NO_SOURCE,
                    f"component {component_id!r} has no source in the variant {variant!r}",
                    f"add one under components.{component_id}.sources in image.yaml,\n"
                    f"or say there why not: `left_out: {{{variant}: …}}`,\n"
                    f"or say `variants: {{{variant}: {{unavailable: …}}}}` in the release",
                    item.location,
                )


def resolutions(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find what keeps a release from being resolved, in each variant and for each architecture."""
    # As written: without an unknown name, what that one was meant to be would be missed as well.
    chain = subject.family.chain_as_written(subject.name)
    for variant in _available(subject):
        for architecture in _architectures(subject, variant):
            platform = Platform("linux", architecture)
            try:
                resolve_variant(subject.catalog, subject.family, chain, variant, "lint", platform, {})
            except ManifestError as error:
                yield from findings_of(error, Code.RESOLUTION)


def _available(subject: ReleaseSubject) -> Iterator[str]:
    return (variant for variant in subject.family.file.variants if not is_unavailable(subject.entry, variant))


def _architectures(subject: ReleaseSubject, variant: str) -> tuple[str, ...]:
    """Return the release's architectures that a variant is for: a base of ours is made for one, and decides.

    Where it is made for none of them, or unknown, all are returned, so that resolving for them says so.
    """
    all_of_release = architectures_of(subject.chain)
    base = base_of_ours(subject.catalog, subject.family, variant)
    if base is None or base.bootstrap.architecture not in all_of_release:
        return all_of_release
    return (base.bootstrap.architecture,)
