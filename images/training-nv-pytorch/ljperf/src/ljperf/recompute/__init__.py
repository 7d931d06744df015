"""Recompute the first k of n layers instead of all, in Transformers and in DeepSpeed's own checkpointing.

In: a model with recomputation switched on by its user, or `layers.apply_to_first(model, k)`. Out: the same model, of
which only the first k layers recompute; with any doubt all do, and one line says why. Never changes what is computed.
Never imports benchmark, report or cli.
"""
