"""How fast does it train here, and in how much memory? Training loops, their measurement, and what is reported.

In: a model's shape, a `TrainingSetup`, the options of a run. Out: a `Result`, which is printed, kept as JSON and
compared. `request`, `result`, `launch` and `compare` must never import torch; `frameworks/` alone knows how each
framework trains, and `measure` times whatever it is given.
"""
