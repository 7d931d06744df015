"""What a DeepSpeed config really does, and what is wrong with it.

In: a config as written (text, file, mapping), whether Transformers fills it in, the number of ranks, the hidden size.
Out: findings with JSON pointers, and the values that DeepSpeed will use. It must never import torch or deepspeed; only
`warning` meets DeepSpeed, as the module that the hook hands in.
"""
