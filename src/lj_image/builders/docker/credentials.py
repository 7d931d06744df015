"""A login from the docker config in the form that an engine takes."""

from __future__ import annotations

from lj_image.oci.reference import Reference
from lj_image.registry import credentials


def credentials_for(sent_to: str) -> dict[str, str]:
    """Return what the docker config, or a helper named in it, has for a reference; empty for an anonymous push.

    Raises PublishError for a config that is unreadable, and for a helper that fails.
    """
    host = Reference.parse(sent_to).host
    found = credentials.credentials_for(host)
    if found is None:
        return {}
    # Engine API, AuthConfig: a token and a password exclude each other.
    secret = {"identitytoken": found.identity_token} if found.identity_token else {"password": found.password}
    return {"username": found.username, "serveraddress": host, **secret}
