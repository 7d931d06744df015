"""Proof on a GPU, in ten minutes: is the planner right, and what do recomputing less and compiling gain?

In: one machine with a GPU (or `--smoke`: the smallest form on a CPU), a time limit. Out: a folder with results as JSON
and Markdown, the machine described in both. Every training is a process of its own, through `ljperf benchmark` and
`ljperf ablation`. Never imports torch itself, but to ask which device is here.
"""
