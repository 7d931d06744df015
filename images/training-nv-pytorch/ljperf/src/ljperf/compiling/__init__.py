"""Decoder blocks compiled one by one, so that a training step is whole graphs also under ZeRO-3.

In: a model before `deepspeed.initialize` (or before FSDP wraps it), and who asked: a call, LJ_COMPILE=1, or
TrainingArguments. Out: the same model, whose blocks run a compiled forward; a block that cannot be compiled runs as
before and says why. `trainer` and `engine` are where the start-up hook comes in. Must never import another room, and
PyTorch only inside functions.
"""
