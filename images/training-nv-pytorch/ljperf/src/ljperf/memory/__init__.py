"""How much memory a device needs in each phase of a training step, and how many layers must recompute.

In: a `ModelShape` and a `TrainingSetup`. Out: `Peak` (the parts of each phase, in bytes) and `Recommendation`.
Never imports a framework's engine or `benchmark`; PyTorch only to count a block that has no formula, and to calibrate.
"""
