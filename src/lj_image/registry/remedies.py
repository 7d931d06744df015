"""Where a repository is made that a registry does not make by itself: each kind of registry, told by its host."""

from __future__ import annotations

import re
from typing import Final

_BY_HOST: Final[tuple[tuple[str, str], ...]] = (
    (
        r"\d+\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?",
        "create it: aws ecr create-repository --region {region} --repository-name {repository}",
    ),
    (r"public\.ecr\.aws", "create it: aws ecr-public create-repository --region us-east-1 --repository-name {name}"),
    (
        r"(?P<region>[a-z0-9-]+)-docker\.pkg\.dev",
        "create it: gcloud artifacts repositories create {second} --repository-format docker --location {region} "
        "--project {first}",
    ),
    (
        r".*\.(?:aliyuncs\.com|cr\.aliyun\.com)",
        "create the namespace {first} in the console of Alibaba's Container Registry, in the region of this host, "
        "and let it make repositories by itself, or create {repository} there",
    ),
    (r"(?:docker\.io|.*\.docker\.io)", "create {repository} at https://hub.docker.com, or log in as {first}"),
    (r"quay\.io", "create the organization {first} at https://quay.io/new/"),
)
_ELSEWHERE: Final = "create the project, namespace or repository at https://{host}: {first}, with {repository} in it"


def to_create(host: str, repository: str) -> str:
    """Return what a person does about a repository that is not there to be pushed to."""
    parts = (*repository.split("/"), "", "")
    words = {
        "host": host,
        "repository": repository,
        "first": parts[0],
        "second": parts[1] or parts[0],
        "name": repository.partition("/")[2] or repository,
    }
    for pattern, advice in _BY_HOST:
        if (found := re.fullmatch(pattern, host.partition(":")[0])) is not None:
            return advice.format(**words, **found.groupdict())
    return _ELSEWHERE.format(**words)
