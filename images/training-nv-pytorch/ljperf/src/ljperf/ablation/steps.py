"""Steps: which optimisation comes on when, and what this machine has none of. Pure: a machine is handed in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ljperf.errors import UsageError

TITLES: Final[dict[str, str]] = {
    "base": "without the image's optimisations, every layer recomputed",
    "comm": "the image's communication library",
    "baseos": "the image's own operating system and libraries",
    "compile": "compiled blocks",
    "checkpoint": "only the planned layers recomputed",
}

# What would switch an optimisation on behind the benchmark's back, through the image's start hook.
QUIET: Final = {"LJPERF_HOOKS": "", "CHECKPOINT_OPTIMIZATION": "", "LJ_COMPILE": ""}

HERE: Final = "here"
"""In place of an image: the environment that runs this program."""


class UnknownStepError(UsageError):
    """No step of that name."""


@dataclass(frozen=True, slots=True)
class Step:
    """One rung: all that is on, this step's own optimisation included."""

    name: str
    title: str
    image: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A step that this machine cannot show, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides which steps there are."""

    engine: bool = False
    """Does `docker` answer?"""
    comm_library: str | None = None
    """Folder of the image's communication library, if it has its own."""
    library_path: str = ""
    """LD_LIBRARY_PATH as it is now."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for."""

    names: tuple[str, ...] = tuple(TITLES)
    images: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    recompute: str = "auto"
    """The checkpoint step's `--recompute`."""


def ladder(asked: Asked, machine: Machine) -> tuple[tuple[Step, ...], tuple[LeftOut, ...]]:
    """The steps in their order, each with all of the earlier ones; and those left out.

    An image holds from its step on, until a later step names another. Raises UnknownStepError.
    """
    _check_names(asked)
    steps: list[Step] = []
    left_out: list[LeftOut] = []
    for name in asked.names:
        why = _missing(name, asked, machine)
        if why:
            left_out.append(LeftOut(name, why))
        else:
            steps.append(_next(name, steps[-1] if steps else None, asked, machine))
    return tuple(steps), tuple(left_out)


def _check_names(asked: Asked) -> None:
    for name in (*asked.names, *asked.images, *asked.environments):
        if name not in TITLES:
            close = difflib.get_close_matches(name, TITLES, n=1)
            known = f"did you mean {close[0]}?" if close else f"there are: {', '.join(TITLES)}"
            raise UnknownStepError(f"no step is called {name!r}", hint=known)
        if name not in asked.names:
            raise UnknownStepError(
                f"{name} has an image or a variable, but is none of --steps", hint="add it to --steps"
            )
    if len(set(asked.names)) != len(asked.names):
        raise UsageError("a step stands twice in --steps", hint=f"each once: {','.join(dict.fromkeys(asked.names))}")


def _missing(name: str, asked: Asked, machine: Machine) -> str | None:
    image = asked.images.get(name)
    if image and image != HERE and not machine.engine:
        return f"it is the image {image}, and no docker answers here"
    if image or asked.environments.get(name):
        return None
    if name == "baseos":
        return "an operating system is an image: --image baseos=REFERENCE, where docker is"
    if name == "comm" and machine.comm_library is None:
        return "no communication library but the framework's own: --env comm:NAME=VALUE or --image comm=REFERENCE"
    return None


def _next(name: str, before: Step | None, asked: Asked, machine: Machine) -> Step:
    image = asked.images.get(name, before.image if before and before.image else HERE)
    environment = dict(before.environment if before else QUIET)
    if image == HERE:  # an image has its own folders and variables
        environment |= _comm(name, "comm" in asked.names, machine)
    environment |= asked.environments.get(name, {})
    options = _options(name, dict(_pairs(before.options)) if before else {"--recompute": "full"}, asked.recompute)
    return Step(name, TITLES[name], None if image == HERE else image, tuple(environment.items()), options)


def _options(name: str, before: dict[str, str | None], recompute: str) -> tuple[str, ...]:
    if name == "compile":
        before["--compile"] = None
    if name == "checkpoint":
        before["--recompute"] = recompute
    return tuple(word for key, value in before.items() for word in ((key,) if value is None else (key, value)))


def _pairs(options: Iterable[str]) -> Iterable[tuple[str, str | None]]:
    words = list(options)
    for index, word in enumerate(words):
        if word.startswith("--"):
            following = words[index + 1] if index + 1 < len(words) else "--"
            yield word, None if following.startswith("--") else following


def _comm(name: str, measured: bool, machine: Machine) -> dict[str, str]:
    """The library is found through LD_LIBRARY_PATH: the base goes without its folder, the step puts it in front."""
    if machine.comm_library is None or not measured or name not in ("base", "comm"):
        return {}
    others = [part for part in machine.library_path.split(":") if part and part != machine.comm_library]
    found = [machine.comm_library, *others] if name == "comm" else others
    return {"LD_LIBRARY_PATH": ":".join(found)}
