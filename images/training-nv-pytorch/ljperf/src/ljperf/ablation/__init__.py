"""What each optimisation contributes: the same training, with one optimisation more at every step.

In: the steps that a machine has (images, environments, options of `ljperf benchmark`) and a folder. Out: the folder
with one JSON per run, and each step's contribution with its confidence interval. Never imports torch: runs are
processes of their own, so that one run's allocator, caches and patches cannot reach the next.
"""
