"""Registries are asked side by side, and briefly: one that is not reached from here is an answer, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, TypeVar

from lj_image.errors import Interrupted
from lj_image.oci.capabilities import Capabilities
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry

BRIEF: Final = Patience(attempts=2, longest_wait_s=10, connect_s=5, idle_s=15, deadline_s=60)
"""Of an endpoint whose host is not reached from outside its VPC, a person wants to know just that, and soon."""
_MOST_AT_ONCE: Final = 32
_HINT: Final = "run the same command again"

OpenRegistry = Callable[[str, Capabilities], Registry]
"""Opens a registry by its host; nothing is asked of it yet."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")


def open_briefly(host: str, capabilities: Capabilities) -> Registry:
    """Open a registry that is given up soon."""
    return Registry(Access(host, patience=BRIEF), intent="pull", capabilities=capabilities)


def ask_all(
    items: Sequence[Item],
    place: Callable[[Item], tuple[str, Capabilities]],
    ask: Callable[[Registry, Item], Answer],
    open_registry: OpenRegistry = open_briefly,
) -> tuple[Answer, ...]:
    """Ask about every item at its place, a host and what it takes, all at once; return the answers in order.

    `ask` runs in threads, which share one registry for each host; what it raises is raised here. Raises Interrupted on
    Ctrl-C, after every request was cut off.
    """
    with ExitStack() as opened:
        registries: dict[str, Registry] = {}
        for host, capabilities in map(place, items):
            if host not in registries:
                registries[host] = opened.enter_context(open_registry(host, capabilities))
        pool = ThreadPoolExecutor(max(1, min(len(items), _MOST_AT_ONCE)), "ask")
        try:
            return tuple(pool.map(lambda item: ask(registries[place(item)[0]], item), items))
        except KeyboardInterrupt:
            for registry in registries.values():
                registry.connection.cut_off()
            raise Interrupted("interrupted while registries were asked", hint=_HINT) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
