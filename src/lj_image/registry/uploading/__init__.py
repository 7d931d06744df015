"""One blob goes to one repository, and is there whole or not at all.

In: a registry, and a body that gives any part of a blob's bytes again. Out: what was sent, and how often it had to be
taken up again. Where an upload stands is asked from the registry, never assumed. Knows nothing of tags, of other
registries, or of where bytes come from.
"""
