"""ZeRO-3's own parameter dictionaries, which older Dynamos cannot look into."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def simplify_parameters(leaf: nn.Module) -> bool:
    """Give the parts of a leaf block ordinary dictionaries of their parameters; was there anything else?

    DeepSpeed's subclass gathers what is read before it was gathered, which cannot be within a leaf. Torch 2.5 finds
    no parameter in a subclass of a dictionary, and so cannot trace the block. DeepSpeed marks the dictionaries at each
    forward, so the new ones must take attributes, as an OrderedDict does and a dict does not.
    """
    if not getattr(leaf, "_z3_leaf", False):
        return False
    odd = [module for module in leaf.modules() if type(module._parameters) not in (dict, OrderedDict)]
    for module in odd:
        plain = OrderedDict(module._parameters.items())
        plain.__dict__.update(vars(module._parameters))
        module._parameters = plain
    return bool(odd)
