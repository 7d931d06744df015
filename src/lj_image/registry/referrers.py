"""What says something about an image from outside it: signatures, bills of materials, attested facts.

Such a manifest names the image as its `subject`. A registry without the referrers API is told by a tag, which clients
keep: an index under the subject's digest with a dash.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md, "Listing Referrers" and "Referrers Tag
Schema"
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urljoin

from lj_image.errors import ArtifactError
from lj_image.oci.content import Content
from lj_image.oci.descent import content_below
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import INDEXES, MediaType
from lj_image.registry.client import Registry
from lj_image.registry.content import blob_at, unreadable
from lj_image.registry.faults import RegistryError
from lj_image.registry.links import following

_MOST_PAGES: Final = 100
_MOST_REFERRERS: Final = 200
"""Of one image with all that is said of its signatures in turn; more is a mistake, or an attack."""
_WITHOUT_API: Final = frozenset({400, 403, 404, 405, 406, 501})
"""How registries, and what stands in front of them, answer a path that they do not know."""


def with_referrers(registry: Registry, repository: str, content: Content) -> Content:
    """Return content with all that a repository has about its documents, and about what says so, in turn.

    Raises ArtifactError where the registry does not tell, or something is damaged.
    """
    try:
        return replace(content, referrers=tuple(_below(registry, repository, content)))
    except RegistryError as error:
        raise unreadable(error) from None


def _below(registry: Registry, repository: str, content: Content) -> Iterable[Content]:
    known = {document.descriptor.digest for document in content.documents}
    asked = list(known)
    while asked:
        for item in referrers_of(registry, repository, asked.pop()):
            if item.digest in known:
                continue
            known.add(item.digest)
            if len(known) > _MOST_REFERRERS:
                raise ArtifactError(f"{content.name} has more than {_MOST_REFERRERS} referrers")
            yield _referrer(registry, repository, item)
            asked.append(item.digest)


def _referrer(registry: Registry, repository: str, item: Descriptor) -> Content:
    def document(wanted: Descriptor) -> bytes:
        return registry.manifest(repository, str(wanted.digest)).content

    return content_below(f"{repository}@{item.digest}", item, document, partial(blob_at, registry, repository))


def referrers_of(registry: Registry, repository: str, subject: Digest) -> tuple[Descriptor, ...]:
    """Return what a repository has about a manifest; raises RegistryError, ArtifactError for an answer that is none."""
    listed = _listed(registry, repository, subject)
    return _tagged(registry, repository, subject).manifests if listed is None else listed


def _listed(registry: Registry, repository: str, subject: Digest) -> tuple[Descriptor, ...] | None:
    """Return what the API says; None where the registry does not have it."""
    found: list[Descriptor] = []
    path, what = f"{repository}/referrers/{subject}", f"the referrers of {repository}@{subject}"
    headers = {"Accept": MediaType.OCI_INDEX}
    for _ in range(_MOST_PAGES):
        try:
            response = registry.connection.ask("GET", path, registry.scopes(repository), what, headers=headers)
        except RegistryError as error:
            if error.status in _WITHOUT_API:
                return None
            raise
        if response.headers.get("Content-Type", "").partition(";")[0].strip() != MediaType.OCI_INDEX:
            return None  # a page for people, of whatever stands in front
        found.extend(Index.parse(response.content, what).manifests)
        link = following(response.headers.get("Link", ""))
        if link is None:
            break
        path = registry.connection.safe(urljoin(str(response.request.url), link))
    return tuple(found)


def _tagged(registry: Registry, repository: str, subject: Digest) -> Index:
    """Return the index under the subject's tag, an empty one where there is none."""
    try:
        held = registry.manifest(repository, referrers_tag(subject))
    except RegistryError as error:
        if error.is_absence:
            return Index()
        raise
    if held.descriptor.digest == subject:
        return Index()  # GitLab answers with the subject to such a name
    if held.descriptor.media_type not in INDEXES:
        raise ArtifactError(
            f"{registry.host}/{repository}:{referrers_tag(subject)} is no index of referrers",
            hint="another tool uses that tag; remove it, or leave the referrers out",
        )
    return Index.parse(held.content, f"the index of referrers of {subject}")


def referrers_tag(subject: Digest) -> str:
    """Return the tag under which clients keep what is said about a subject."""
    return f"sha256-{subject.hex}"


def put_referrer(registry: Registry, repository: str, content: Content) -> None:
    """Store a manifest that has a subject; its blobs have to be there.

    Where the registry does not say that it has understood, it is added to the subject's tag, once. Raises
    RegistryError, ArtifactError.
    """
    root = content.root
    what, headers = f"manifest {repository}@{root.descriptor.digest}", {"Content-Type": root.descriptor.media_type}
    path = f"{repository}/manifests/{root.descriptor.digest}"
    scopes = registry.scopes(repository)
    response = registry.connection.ask("PUT", path, scopes, what, headers=headers, content=root.content)
    subject = subject_of(content)
    # Quay lists referrers and does not say so: it is asked.
    if subject is None or "OCI-Subject" in response.headers or _is_listed(registry, repository, subject, content):
        return
    _add_to_tag(registry, repository, subject, _described(content))


def _is_listed(registry: Registry, repository: str, subject: Digest, content: Content) -> bool:
    listed = _listed(registry, repository, subject)
    return listed is not None and content.root.descriptor.digest in {item.digest for item in listed}


def _add_to_tag(registry: Registry, repository: str, subject: Digest, entry: Descriptor) -> None:
    index = _tagged(registry, repository, subject)
    if entry.digest in {item.digest for item in index.manifests}:
        return
    added = Index((*index.manifests, entry), annotations=index.annotations)
    registry.put_manifest(repository, referrers_tag(subject), added.to_bytes(), MediaType.OCI_INDEX)
    # No registry locks a tag: what another client wrote meanwhile may have been lost, or ours.
    if entry.digest not in {item.digest for item in _tagged(registry, repository, subject).manifests}:
        raise RegistryError(
            f"another client wrote the referrers of {subject} at the same time", hint="run the same command again"
        )


def subject_of(content: Content) -> Digest | None:
    """Return what a manifest or index says that it is about."""
    document = content.root
    reader = Index if document.descriptor.media_type in INDEXES else Manifest
    subject = reader.parse(document.content, f"the document {document.descriptor.digest}").subject
    return None if subject is None else subject.digest


def _described(content: Content) -> Descriptor:
    """Return the entry of a referrer: with its type, and its annotations, as the specification wants."""
    root = content.root
    if root.descriptor.media_type in INDEXES:
        index = Index.parse(root.content)
        return replace(root.descriptor, annotations=index.annotations, artifact_type=index.artifact_type, platform=None)
    manifest = Manifest.parse(root.content)
    kind = manifest.artifact_type or manifest.config.media_type
    return replace(root.descriptor, annotations=manifest.annotations, artifact_type=kind, platform=None)
