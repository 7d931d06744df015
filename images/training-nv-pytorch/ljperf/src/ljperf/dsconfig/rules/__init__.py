"""One rule a module, or a few of a kind: each takes a `Reading` and yields findings. They know of no other rule."""
