"""Blobs go to many registries at once, and each is read once.

In: blobs with where they lie, and repositories that are to have them. Out: what became of each blob at each place.
A place that is slow, waits or fails holds the others up by no more than a bounded buffer. Knows nothing of manifests
and tags.
"""
