"""ljperf: how fast does this image train, how much memory does it take, and how many layers must recompute?

`models/` says what is trained, `devices/` on what, `setup` how; `memory/` predicts, `benchmark/` measures.
`recompute/` and `compiling/` are the image's two optimisations, which `startup/` puts in place. Nothing here imports
PyTorch before it is needed.
"""

__version__ = "0.1.0"
