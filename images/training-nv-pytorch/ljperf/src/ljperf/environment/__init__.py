"""What this machine and this image have, as far as it decides how training runs.

In: the running system. Out: `Environment`, for people and as JSON, with warnings that name what to do. Shows only
variables of a list: anything else may be a secret. Never imports benchmark, memory or recompute.
"""
