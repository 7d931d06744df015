"""Registries, asked directly: no engine stands between.

In: references, and images as `oci` has them. Out: images whose layers are opened where they lie, and digests of what
was pushed, as the registry says them. Logins are those of the docker config; they are sent to nobody but the registry
and the token service that it names, and shown to nobody. Knows no engine, no release and no catalog.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""
