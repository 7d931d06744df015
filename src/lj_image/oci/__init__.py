"""What an image is in files: digests, descriptors, manifests, configurations, blobs, layouts and archives.

In: bytes, files and folders. Out: values that know their own bytes and digest, and readers that hold no whole layer.
Knows no engine, no network, no release, and imports nothing of the tool but its errors and `whole`.
Format: https://github.com/opencontainers/image-spec
"""
