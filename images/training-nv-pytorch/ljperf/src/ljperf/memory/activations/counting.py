"""Count what autograd saves: run one block, or a whole small model, and add up the storages that it keeps.

A storage counts once and whole, whichever views of it are saved, as memory does. Parameters, buffers and what is
shared by all blocks (rotary tables, masks) do not count. Fake tensors have storages of the true size and no memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ljperf.errors import LjperfError
from ljperf.models.building import build, build_block, dtype_of
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

if TYPE_CHECKING:
    import torch
    from torch import nn


class CountError(LjperfError):
    """The block cannot be run for counting."""


class SavedStorages:
    """What autograd saved while it was watching: each storage once, and held, as a freed one's id is used again."""

    def __init__(self, excluded: Iterable[torch.Tensor]) -> None:
        self._excluded = {key_of(tensor): tensor.untyped_storage() for tensor in excluded}
        self._kept: dict[int, torch.UntypedStorage] = {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Note the storage of a tensor that autograd saves."""
        key = key_of(tensor)
        if key not in self._excluded:
            self._kept[key] = tensor.untyped_storage()
        return tensor

    def holds(self, tensor: torch.Tensor) -> bool:
        """Is this tensor's storage among them?"""
        return key_of(tensor) in self._kept

    @property
    def bytes(self) -> int:
        """All of them together."""
        return sum(int(storage.nbytes()) for storage in self._kept.values())


def key_of(tensor: torch.Tensor) -> int:
    """Two tensors share memory if and only if their keys are equal."""
    return int(tensor.untyped_storage()._cdata)


def saved_by(run: Callable[[], Any], excluded: Iterable[torch.Tensor]) -> SavedStorages:
    """Run something and say what autograd saved; its result is alive until then."""
    from torch.autograd.graph import saved_tensors_hooks

    saved = SavedStorages(excluded)
    with saved_tensors_hooks(saved.pack, lambda tensor: tensor):
        result = run()
    del result
    return saved


def counted(model: ModelShape | nn.Module, setup: TrainingSetup, *, fake: bool = True) -> int:
    """Bytes that one block of `model` saves in training, for `setup.tokens` tokens.

    A module is a causal language model with its blocks in `model.layers`; it is run as it is. Raises CountError if it
    cannot be run, with fake tensors for instance because its control flow depends on their values.
    """
    return call_of(model, setup, fake=fake)[0]


def counted_with_input(model: ModelShape | nn.Module, setup: TrainingSetup, *, fake: bool = True) -> tuple[int, int]:
    """The same, and how many of those bytes are the block's own input: what a recomputed block has already."""
    return call_of(model, setup, fake=fake)


def call_of(model: ModelShape | nn.Module, setup: TrainingSetup, *, fake: bool) -> tuple[int, int]:
    """Bytes saved by one block, and those of them in its input."""
    with _failures_named(model), _fake_tensors(fake):
        module = _one_block(model, setup)
        block, arguments, keywords = captured(module, setup)
        hidden, *others = arguments
        if fake and setup.attention != "eager" and not _is_windowed(module, setup):
            # Newer Transformers make a mask under fake tensors, as if for an export; in training none is needed.
            keywords = {**keywords, "attention_mask": None} if "attention_mask" in keywords else keywords
        hidden = hidden.detach().requires_grad_()
        shared = [*module.parameters(), *module.buffers(), *tensors_in((others, keywords))]
        saved = saved_by(lambda: block(hidden, *others, **keywords), shared)
        return saved.bytes, hidden.untyped_storage().nbytes() if saved.holds(hidden) else 0


def counted_model(shape: ModelShape, setup: TrainingSetup, *, fake: bool = True) -> int:
    """Bytes that the whole model saves in a forward with its loss, nothing recomputed."""
    with _failures_named(shape), _fake_tensors(fake):
        model = build(shape, dtype=dtype_of(setup.precision), attention=setup.attention).train()
        ids = token_ids(setup)
        return saved_by(lambda: model(input_ids=ids, labels=ids.clone()), [*model.parameters(), *model.buffers()]).bytes


def captured(module: nn.Module, setup: TrainingSetup) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The first block, and the arguments with which its model calls it."""
    block = module.get_submodule("model.layers.0")
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    hook = block.register_forward_pre_hook(lambda _, *call: calls.append(call), with_kwargs=True)
    try:
        module.get_submodule("model")(input_ids=token_ids(setup))
    finally:
        hook.remove()
    arguments, keywords = calls[0]
    if not arguments:
        keywords = dict(keywords)
        arguments = (keywords.pop("hidden_states"),)
    return block, arguments, keywords


def token_ids(setup: TrainingSetup) -> torch.Tensor:
    """Token ids of one batch; which tokens they are decides no size."""
    import torch

    return torch.zeros(setup.micro_batch, setup.sequence, dtype=torch.long)


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """All tensors in nested tuples, lists and dictionaries."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for entry in value:
            yield from tensors_in(entry)
    elif isinstance(value, dict):
        yield from tensors_in(tuple(value.values()))


def _one_block(model: ModelShape | nn.Module, setup: TrainingSetup) -> nn.Module:
    if not isinstance(model, ModelShape):
        return model
    shape = replace(model, max_positions=max(model.max_positions, setup.sequence))
    return build_block(shape, dtype=dtype_of(setup.precision), attention=setup.attention).train()


def _is_windowed(module: nn.Module, setup: TrainingSetup) -> bool:
    """Does attention leave out tokens of a sequence this long, so that it does need a mask?"""
    window = getattr(module.config, "sliding_window", None)
    return isinstance(window, int) and window < setup.sequence


@contextlib.contextmanager
def _fake_tensors(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


@contextlib.contextmanager
def _failures_named(model: ModelShape | nn.Module) -> Iterator[None]:
    """What a model raises when it is run in an unusual way is not a fault of the user's."""
    name = model.name if isinstance(model, ModelShape) else type(model).__name__
    try:
        yield
    except LjperfError:
        raise
    except Exception as error:  # any model's code runs here
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CountError(f"one block of {name} cannot be run to count what it saves: {first}") from error
