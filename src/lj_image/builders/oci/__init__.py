"""Plan -> OCI image without an engine: layers are assembled from the locked files themselves.

In: a plan, its files in the artifact store, a base. Out: blobs, a manifest, an image in any of the common formats.
Nothing here talks to an engine, runs a program of the image, or unpacks a file to disk.
"""
