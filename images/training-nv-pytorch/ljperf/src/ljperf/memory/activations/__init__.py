"""What forward keeps for backward: one block, a recomputed block, and what is outside the blocks.

In: a model's shape and a training setup. Out: `Activations`, exact where a formula or a count is. `counting` imports
PyTorch, and only where no formula is known. Knows nothing of ZeRO, optimizers or devices.
"""

from ljperf.memory.activations.estimate import Activations, activations_of

__all__ = ["Activations", "activations_of"]
