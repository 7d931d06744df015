"""Which component brings which distribution: a pure walk over the resolved graph."""

from __future__ import annotations

from collections.abc import Mapping

from lj_image.lock.lock import SHARED


def owners(named: Mapping[str, str], required_by: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the owner of each distribution: a component's id, or `shared`.

    `named` maps the distributions that components ask for to their component; `required_by` maps every
    distribution to those that require it. A component's walk stops where another component's begins, so what
    only that one brings stays with it:

    >>> owners({"vllm": "vllm", "torch": "pytorch"}, {"vllm": (), "torch": ("vllm",), "sympy": ("torch",)})
    {'sympy': 'pytorch', 'torch': 'pytorch', 'vllm': 'vllm'}
    """
    requires = _inverted(required_by)
    reached_by: dict[str, set[str]] = {name: set() for name in required_by}
    for component in dict.fromkeys(named.values()):
        for name in _walk(component, named, requires):
            reached_by[name].add(component)
    return {name: named.get(name) or _only(reached_by[name]) for name in sorted(required_by)}


def _inverted(required_by: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    requires: dict[str, list[str]] = {}
    for name, parents in required_by.items():
        for parent in parents:
            requires.setdefault(parent, []).append(name)
    return requires


def _walk(component: str, named: Mapping[str, str], requires: Mapping[str, list[str]]) -> set[str]:
    """Return what is reached from a component's own distributions without entering another component's."""
    seen: set[str] = set()
    waiting = [name for name, owner in named.items() if owner == component]
    while waiting:
        name = waiting.pop()
        if name in seen or named.get(name, component) != component:
            continue
        seen.add(name)
        waiting.extend(requires.get(name, ()))
    return seen


def _only(components: set[str]) -> str:
    return next(iter(components)) if len(components) == 1 else SHARED
