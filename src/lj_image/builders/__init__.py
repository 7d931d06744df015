"""Turns a plan into an image: with a Docker engine (`docker/`), or without one (`oci/`)."""
