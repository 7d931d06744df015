"""What a registry's refusal means, in the words that engines hand on, and the way out of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lj_image.errors import PublishError

# Whatever is not surely "no such tag" is an error: a tag taken for absent would be overwritten. So a plain 404 is not
# enough: an engine that does not know the request says "page not found".
NO_SUCH_TAG: Final = re.compile(
    r"manifest.unknown|name.unknown|not known to registry|\b(manifest|artifact|repository|tag)\b.* not found",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A kind of refusal, known by words that engines use for it."""

    pattern: re.Pattern[str]
    says: str
    hint: str
    quoted: bool = True
    """Whether the engine's own words tell more than ours."""


def _fault(pattern: str, says: str, hint: str, *, quoted: bool = True) -> _Fault:
    return _Fault(re.compile(pattern, re.IGNORECASE), says, hint, quoted)


NETWORK_HINT: Final = "a VPC host is reached only from inside its region's VPC: push from a machine there"
_FAULTS: Final = (  # the first that fits; words of 20.10.24 and 26.1.5, both image stores
    _fault(r"no such host|\blookup \S+", "cannot be found by name from here", NETWORK_HINT, quoted=False),
    _fault(
        r"connection refused", "refuses the connection", "is the registry running, and is this its port?", quoted=False
    ),
    _fault(
        r"HTTP response to HTTPS client",
        "speaks plain http, which the engine does not take",
        "give the registry a certificate, or name {host} under insecure-registries of the engine",
        quoted=False,
    ),
    _fault(
        r"timeout|deadline exceeded|no route to host|network is unreachable|request canceled",
        "does not answer from here",
        NETWORK_HINT,
        quoted=False,
    ),
    _fault(
        r"x509|tls:|certificate",
        "has a certificate that the engine does not trust",
        "put the registry's CA on the engine's machine, at /etc/docker/certs.d/{host}/ca.crt",
    ),
    _fault(
        r"no basic auth credentials|unauthorized|authentication required|incorrect username or password",
        "refuses the login",
        "run: docker login {host}",
    ),
    _fault(
        r"denied|forbidden|insufficient.scope|authorization failed",
        "does not let this account do that",
        "log in as an account that may push there: docker login {host}",
    ),
)


def explain(words: str, sent_to: str) -> PublishError:
    """Turn an engine's words about a registry into an error with a way out."""
    host = sent_to.partition("/")[0]
    for fault in _FAULTS:
        if fault.pattern.search(words):
            quote = f": {words}" if fault.quoted else ""
            return PublishError(f"{host} {fault.says}{quote}", hint=fault.hint.format(host=host))
    return PublishError(f"{host} refused {sent_to}: {words}", hint="these are the words of the registry or the engine")
