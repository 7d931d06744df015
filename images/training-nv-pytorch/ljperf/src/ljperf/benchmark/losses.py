"""The loss over a large vocabulary: as Transformers has it, in chunks of tokens, or Liger's kernel.

The plain loss keeps several tensors of tokens × vocabulary until backward. The other two never make one: they compute
the head's gradients chunk by chunk in the forward pass already, and keep only those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from ljperf.errors import LjperfError
from ljperf.setup import Loss

if TYPE_CHECKING:
    import torch
    from torch import nn

CHUNK_TOKENS = (
    1024  # at a vocabulary of 128,256 a chunk's fp32 logits take 0.5 GB, and the matrix product is still large
)


class NoLossError(LjperfError):
    """A loss that this environment, or this model, does not have."""


def install(model: nn.Module, loss: Loss, chunk_tokens: int = CHUNK_TOKENS) -> None:
    """Let `model(input_ids=…, labels=…)` give that loss. Raises NoLossError if Liger or the model's head is missing.

    The forward methods of the model and its head are replaced, not wrapped in a module: names of parameters stay, and
    the head's own hooks (ZeRO-3, FSDP) gather its weight for the whole loss.
    """
    match loss:
        case "plain":
            return
        case "chunked":
            _replace(model, partial(_chunked_head, chunk_tokens=chunk_tokens))
        case "liger":
            _replace(model, partial(_liger_head, kernel=_liger()))
        case _:
            assert_never(loss)


def _replace(model: nn.Module, head: Callable[..., torch.Tensor]) -> None:
    base, output = getattr(model, "model", None), getattr(model, "lm_head", None)
    if base is None or output is None or getattr(output, "bias", None) is not None:
        raise NoLossError("this model's head is no plain matrix after its decoder", hint="use --loss plain")
    output.forward = partial(head, output)
    model.forward = partial(_forward, base, output)


def _forward(
    base: nn.Module, head: nn.Module, input_ids: torch.Tensor, labels: torch.Tensor, **_: Any
) -> dict[str, torch.Tensor]:
    hidden = base(input_ids=input_ids, use_cache=False)[0]
    # Token i predicts token i+1.
    return {"loss": head(hidden[:, :-1].flatten(0, 1), labels[:, 1:].flatten())}


def _chunked_head(head: nn.Module, hidden: torch.Tensor, labels: torch.Tensor, *, chunk_tokens: int) -> torch.Tensor:
    hidden, weight = _cast(hidden, head.weight)
    loss: torch.Tensor = _function().apply(hidden, weight, labels, chunk_tokens)
    return loss


def _liger_head(head: nn.Module, hidden: torch.Tensor, labels: torch.Tensor, *, kernel: Any) -> torch.Tensor:
    hidden, weight = _cast(hidden, head.weight)
    loss: torch.Tensor = kernel(weight, hidden, labels)
    return loss


def _cast(hidden: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What autocast does to the operands of a Linear; a function of our own is not on its list."""
    import torch

    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    return hidden.to(dtype), weight.to(dtype)


def _liger() -> Any:
    try:
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss
    except ImportError as error:
        hint = "pip install liger-kernel (it needs a GPU), or use --loss chunked"
        raise NoLossError(f"Liger's loss cannot be loaded: {error}", hint=hint) from None
    return LigerFusedLinearCrossEntropyLoss()


def chunked(
    hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, chunk_tokens: int = CHUNK_TOKENS
) -> torch.Tensor:
    """Mean cross entropy (fp32) of `hidden` [tokens, width] times `weight` [vocabulary, width] against `labels`.

    In fp32 its gradients are the plain ones up to rounding (1e-6 of the largest). In bf16 the weight's gradient is
    rounded once per chunk: up to 2% of the largest, where the plain one rounds once.
    """
    loss: torch.Tensor = _function().apply(hidden, weight, labels, chunk_tokens)
    return loss


def _function() -> Any:
    """The autograd function; made late, because its base class is torch's."""
    if not _made:
        import torch

        class ChunkedLoss(torch.autograd.Function):  # type: ignore[misc]
            """Gradients of hidden and weight are there when the forward ends; backward only scales them."""

            @staticmethod
            def forward(
                ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, chunk_tokens: int
            ) -> torch.Tensor:
                total, grad_hidden, grad_weight = _in_chunks(hidden, weight, labels, chunk_tokens)
                ctx.save_for_backward(grad_hidden, grad_weight)
                return total

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
                grad_hidden, grad_weight = ctx.saved_tensors
                return grad_hidden.mul_(grad), grad_weight.mul_(grad), None, None

        _made.append(ChunkedLoss)
    return _made[0]


_made: list[Any] = []


def _in_chunks(
    hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, chunk_tokens: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    import torch

    count = labels.numel()
    grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
    total = torch.zeros((), dtype=torch.float32, device=hidden.device)
    for start in range(0, count, chunk_tokens):
        part = slice(start, start + chunk_tokens)
        log_softmax = torch.log_softmax((hidden[part] @ weight.t()).float(), dim=-1)
        wanted = labels[part].unsqueeze(1)
        total -= log_softmax.gather(1, wanted).sum()
        # d(mean cross entropy)/d(logits) = (softmax - one-hot) / count
        grad = log_softmax.exp_().scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=torch.float32))
        grad = grad.div_(count).to(weight.dtype)
        grad_hidden[part] = grad @ weight
        grad_weight.addmm_(grad.t(), hidden[part])
    return total / count, grad_hidden, grad_weight
