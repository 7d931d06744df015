"""Registries, asked directly: no engine stands between.

In: references, and images as `oci` has them. Out: images whose layers are opened where they lie, and digests of what
was pushed, as the registry says them. Logins are those of the docker config; they are sent to nobody but the registry
and the token service that it names, and shown to nobody. Knows no engine, no release and no catalog.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import sys

# httpx imports its own command line where it can, and with it rich: a tenth of a push that has nothing to send. It
# expects an ImportError there, which a module that is None raises.
if "httpx" not in sys.modules:
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
