"""A repository's tags: which there are, and one taken away.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md, "Content Discovery" and "Deleting tags"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

from lj_image.oci.values import Value
from lj_image.registry.client import Registry
from lj_image.registry.faults import refused
from lj_image.registry.links import following

_MOST_PAGES: Final = 1000
_UNSUPPORTED: Final = frozenset({400, 404, 405})
"""What registries that delete by digest alone answer to a tag: UNSUPPORTED, DIGEST_INVALID, or nothing of the kind."""


def tags_of(registry: Registry, repository: str) -> Iterator[str]:
    """Yield every tag of a repository, page by page; raises RegistryError, ArtifactError for an answer that is none."""
    path, what = f"{repository}/tags/list", f"the tags of {repository}"
    for _ in range(_MOST_PAGES):
        response = registry.connection.ask("GET", path, registry.scopes(repository), what)
        yield from Value.parse(response.content, what)["tags"].texts()
        link = following(response.headers.get("Link", ""))
        if link is None:
            return
        path = registry.connection.safe(urljoin(str(response.request.url), link))


def delete_tag(registry: Registry, repository: str, tag: str) -> bool:
    """Take a tag away, and nothing else; False where this kind of registry deletes by digest alone.

    Raises RegistryError where it refuses for another reason.
    """
    return _delete(registry, repository, tag, f"the deletion of {repository}:{tag}")


def delete_manifest(registry: Registry, repository: str, digest: str) -> bool:
    """Take a manifest away with every tag that stands for it; False where nothing can be deleted here.

    Raises RegistryError where it refuses for another reason.
    """
    return _delete(registry, repository, digest, f"the deletion of {repository}@{digest}")


def _delete(registry: Registry, repository: str, wanted: str, what: str) -> bool:
    # A login for pulling, or for pushing, is not one for deleting: distribution asks for this action by its name.
    scopes = (f"repository:{repository}:delete,pull",)
    response = registry.connection.send("DELETE", f"{repository}/manifests/{wanted}", scopes, what)
    if response.is_success:
        return True
    if response.status_code in _UNSUPPORTED:
        return False
    raise refused(response, what)
