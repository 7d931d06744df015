"""A model's layers in their order, and the function that recomputes the first k of them and calls the others as usual.

Transformers hands each layer to one function, `_gradient_checkpointing_func`; ours stands in its place. The flags of
Transformers stay on, so that the key/value cache stays off whatever k is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ljperf.errors import LjperfError, UsageError

if TYPE_CHECKING:
    from torch import nn

PLACE = "_ljperf_place"  # an attribute of the layer: copies of the model and wrappers such as FSDP's keep it
FUNCTION = "_gradient_checkpointing_func"  # Transformers' name for it

Decide = Callable[["Asked"], "int | None"]


class NoStackError(LjperfError):
    """The model has no single stack of equal layers, so that "the first k" means nothing."""


class Asked:
    """The first training forward, as its first layer sees it: all that can be known before k is chosen."""

    __slots__ = ("requires_grad", "sequence", "sequences", "width")

    def __init__(self, sequences: int, sequence: int, width: int, requires_grad: bool) -> None:
        self.sequences, self.sequence, self.width, self.requires_grad = sequences, sequence, width, requires_grad


def apply_to_first(model: nn.Module, k: int, *, use_reentrant: bool = True) -> int:
    """Recompute the first `k` layers of a Transformers model, and those only; the number of its layers comes back.

    Raises NoStackError for a model without a single stack of equal layers, UsageError for a k that it does not have.
    """
    layers = stack_of(model)
    if not 0 <= k <= len(layers):
        raise UsageError(f"{k} layers cannot be recomputed of {len(layers)}")
    switch = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    switch({"use_reentrant": use_reentrant})
    dispatch(model, layers, lambda _asked: k)
    return len(layers)


def dispatch(model: nn.Module, layers: Iterable[nn.Module], decide: Decide) -> None:
    """Put `FirstLayers` where Transformers has put its checkpoint function, and number the layers."""
    for place, layer in enumerate(layers):
        setattr(layer, PLACE, place)
    modules = [module for module in model.modules() if FUNCTION in vars(module)]
    if not modules:
        raise NoStackError("recomputation is switched on nowhere in it")
    function = getattr(modules[0], FUNCTION)
    checkpoint = function.checkpoint if isinstance(function, FirstLayers) else function
    chosen = Chosen(decide)
    for module in modules:
        setattr(module, FUNCTION, FirstLayers(checkpoint, chosen, getattr(module, PLACE, None)))


def stack_of(model: nn.Module) -> tuple[nn.Module, ...]:
    """The decoder's layers in their order. Raises NoStackError if there are two stacks, shared or unequal layers."""
    config = getattr(model, "config", None)
    count = getattr(config, "num_hidden_layers", None)
    if not isinstance(count, int) or getattr(config, "is_encoder_decoder", False):
        raise NoStackError("its config does not tell one stack of layers")
    stacks = [layers for layers in outermost_lists(model) if len(layers) == count]
    if len(stacks) != 1:
        raise NoStackError(f"it has {len(stacks)} stacks of {count} layers")
    layers = stacks[0]
    if len(set(map(id, layers))) < count or len({type(layer) for layer in layers}) > 1:
        raise NoStackError("its layers are shared or of several kinds")
    return layers


def outermost_lists(model: nn.Module) -> Iterator[tuple[nn.Module, ...]]:
    """The module lists that are in no other list: a layer's experts are a list, too."""
    from torch import nn

    prefixes: list[str] = []
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, nn.ModuleList) and not any(name.startswith(prefix) for prefix in prefixes):
            prefixes.append(f"{name}.")
            yield tuple(module)


class FirstLayers:
    """Stands for Transformers' checkpoint function; asks once, in the first training forward, how many recompute.

    Up to 4.52 the model has the function, which gets a layer's bound `__call__`; later each layer has its own, `place`.
    """

    def __init__(self, checkpoint: Callable[..., Any], chosen: Chosen, place: int | None) -> None:
        self.checkpoint = checkpoint
        self.chosen = chosen
        self.place = place
        self.known, self.choose = constants_of(chosen)

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One layer, recomputed in backward or not."""
        place = self.place
        if place is None:
            place = getattr(getattr(function, "__self__", None), PLACE, None)
        if place is None or kwargs or not args:
            return self.checkpoint(function, *args, **kwargs)
        first = self.known()
        if first is None:
            first = self.first_for(args[0])
        return self.checkpoint(function, *args) if place < first else function(*args)

    def first_for(self, hidden: Any) -> int:
        """Choose k, with the layer's input at hand; without gradients nothing is chosen yet."""
        import torch

        if not torch.is_grad_enabled():
            return EVERY
        if getattr(hidden, "ndim", None) != 3:
            return self.choose(0, 0, 0, False)
        return self.choose(hidden.shape[0], hidden.shape[1], hidden.shape[2], hidden.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> FirstLayers:
        return FirstLayers(self.checkpoint, self.chosen, self.place)

    def __reduce__(self) -> tuple[Any, ...]:
        # A model saved whole is loaded where there is no ljperf, too.
        return functools.partial, (self.checkpoint,)


def constants_of(chosen: Chosen) -> tuple[Callable[[], int | None], Callable[[int, int, int, bool], int]]:
    """`known` and `choose` as plain functions, which run while a graph is traced: their answers are its constants."""
    from torch.compiler import assume_constant_result

    def known() -> int | None:
        return chosen.known()

    def choose(sequences: int, sequence: int, width: int, requires_grad: bool) -> int:
        return chosen.choose(sequences, sequence, width, requires_grad)

    return assume_constant_result(known), assume_constant_result(choose)


EVERY = 1 << 30  # more than any model has layers


class Chosen:
    """The number of recomputed layers, once it is chosen; copies of a model share it."""

    def __init__(self, decide: Decide) -> None:
        self.decide = decide
        self.first: int | None = None

    def known(self) -> int | None:
        """The first so many, or None before the choice."""
        return self.first

    def choose(self, sequences: int, sequence: int, width: int, requires_grad: bool) -> int:
        """Decide now; None from the decision stands for all layers."""
        if self.first is None:
            first = self.decide(Asked(sequences, sequence, width, requires_grad))
            self.first = EVERY if first is None else first
        return self.first
