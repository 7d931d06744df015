"""Collectives: how fast they are here, and which library answers.

In: operations, sizes, a backend; the ranks that a launcher started, or a number of them to start. Out: rows as users of
nccl-tests know them. PyTorch is imported inside functions; it must never import deepspeed, or another room's loops.
"""
