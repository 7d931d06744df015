"""Addresses of ours in texts: the public one has no regions, a VPC's region exists, and the image is one of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lj_image.catalog.catalog import Catalog, Family, shown
from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.subject import FamilySubject, FileSubject
from lj_image.catalog.lint.texts import WrittenText, texts_of_family, texts_of_release
from lj_image.errors import Location
from lj_image.suggest import did_you_mean

_PART = r"(?:\{\{.*?\}\}|[^\s./]+)"
"""A label of a host: a region's name, or something that stands for one, such as `{region-id}` or `{{ region }}`."""
_REPOSITORY = r"(?:/(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*))?"
_STARTS = r"(?<![A-Za-z0-9.-])"


@dataclass(frozen=True)
class Places:
    """The hosts of a family and the repositories of its catalog."""

    family: Family
    repositories: tuple[str, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that have a VPC host."""
        return self.family.file.endpoints.vpc.region_names

    @cached_property
    def public_region(self) -> str | None:
        """The label of the public host that looks like a region to those who rewrite addresses."""
        labels = self.family.file.endpoints.public.host.split(".")
        return next((label for label in labels if label in self.regions), None)

    @cached_property
    def public(self) -> re.Pattern[str]:
        """The public host with any region in its place."""
        host = re.escape(self.family.file.endpoints.public.host)
        if self.public_region is not None:
            host = host.replace(re.escape(self.public_region), f"(?P<region>{_PART})", 1)
        return re.compile(_STARTS + host + _REPOSITORY)

    @cached_property
    def vpc(self) -> re.Pattern[str]:
        """The host inside a VPC with any region in its place."""
        host = re.escape(self.family.file.endpoints.vpc.host)
        return re.compile(_STARTS + host.replace(re.escape("{region}"), f"(?P<region>{_PART})", 1) + _REPOSITORY)


def places(catalog: Catalog, family: Family) -> Places:
    """Return the places that a family's texts may name."""
    return Places(family, tuple(_repository(catalog.document(name).data) for name in catalog.family_names))


def public_host(subject: FamilySubject) -> Iterator[Finding]:
    """Find a public host that is to change with the region."""
    host = subject.family.file.endpoints.public.host
    if "{" in host:
        yield Finding(
            Code.REGION_IN_PUBLIC_ADDRESS,
            f"the public host {host} is to change with the region, but there is one for the whole world",
            "write the host itself; `{region}` stands in endpoints.vpc.host only",
            subject.family.document.place_of(("endpoints", "public", "host")),
        )


def family_addresses(subject: FamilySubject) -> Iterator[Finding]:
    """Find wrong addresses in the texts of `image.yaml` and in the family's templates for notes."""
    known = places(subject.catalog, subject.family)
    yield from _in_texts(known, texts_of_family(subject.family))
    for path in sorted((subject.family.folder / "notes").glob("*.j2")):
        text = path.read_text(encoding="utf-8", errors="replace")  # addresses are ASCII
        for number, line in enumerate(text.splitlines(), start=1):
            for found, column in _findings(known, line):
                yield Finding(*found, Location(shown(path), number, column))


def release_addresses(subject: FileSubject) -> Iterator[Finding]:
    """Find wrong addresses in the texts of a release."""
    return _in_texts(places(subject.catalog, subject.family), texts_of_release(subject.entry))


def _in_texts(known: Places, texts: Iterator[WrittenText]) -> Iterator[Finding]:
    for text in texts:
        for _, words, place in text.by_language():
            for found, _ in _findings(known, words):
                yield Finding(*found, place)


Fault = tuple[Code, str, str]
"""Code, message and hint of a finding that has no place yet."""


def _findings(known: Places, text: str) -> Iterator[tuple[Fault, int]]:
    """Yield each fault of a text with its column."""
    for found in known.public.finditer(text):
        if known.public_region not in (None, region := found.groupdict().get("region")):
            yield _region_in_public(known, str(region)), found.start() + 1
        if fault := _unknown_repository(known, found["repository"]):
            yield fault, found.start("repository") + 1
    for found in known.vpc.finditer(text):
        if _is_name(found["region"]) and found["region"] not in known.regions:
            yield _unknown_region(known, found["region"]), found.start("region") + 1
        if fault := _unknown_repository(known, found["repository"]):
            yield fault, found.start("repository") + 1


def _region_in_public(known: Places, region: str) -> Fault:
    host, vpc = known.family.file.endpoints.public.host, known.family.file.endpoints.vpc.host
    return (
        Code.REGION_IN_PUBLIC_ADDRESS,
        f"the public address has {region} in place of {known.public_region}, but it never changes with the region",
        f"write {host}; inside a region's VPC the host is {vpc}",
    )


def _unknown_region(known: Places, region: str) -> Fault:
    return (
        Code.UNKNOWN_REGION,
        f"the address of a VPC names the region {region}, which endpoints.vpc.regions does not have",
        did_you_mean(region, known.regions, noun="regions"),
    )


def _unknown_repository(known: Places, repository: str | None) -> Fault | None:
    namespace = known.family.file.namespace
    if repository is None or repository in (*known.repositories, namespace):
        return None
    return (
        Code.UNKNOWN_REPOSITORY,
        f"the address names the image {repository}, which this catalog does not have",
        did_you_mean(repository, known.repositories, noun="images") + "\nan image's name is never translated",
    )


def _is_name(region: str) -> bool:
    """Say whether a host's label is a name, and not a placeholder such as `<region>` or `{region-id}`."""
    return re.fullmatch(r"[A-Za-z0-9-]+", region) is not None


def _repository(image: dict[str, Any]) -> str:
    return "/".join(str(part) for part in (image.get("namespace"), image.get("image")) if part)
