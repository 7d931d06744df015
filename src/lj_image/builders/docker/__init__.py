"""Builds an image with a Docker engine: a generated Dockerfile and its context in, an image id out.

Nothing here needs the docker command: docker-py carries the requests, and `session/` serves what BuildKit asks
its client for. It must never import from `catalog`, `lock` or `cli`.
"""
