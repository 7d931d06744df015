"""What is trained: a model's shape from a table or a Transformers config, its parameters, its arithmetic, itself.

In: a name or a config. Out: `ModelShape`, counts, a model with random weights. Never downloads; only `building`
imports PyTorch.
"""
