"""What every Python in the image runs at its start, through `ljperf.pth` (or `ljperf.start`, from Python 3.15 on).

In: the environment. Out: at most one finder in `sys.meta_path`, which calls a function of ours once a named module has
been executed. Never imports anything but `sys` and `os` before that, and never fails: trouble is one line on rank 0.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` would be the largest import of all
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

YES = ("1", "true", "yes", "on")
MARK = "ljperf"  # how this finder is known, should this module be loaded twice


def asked(environ: "Mapping[str, str]", name: str) -> bool:
    """Is a switch on? As users write it: 1, true, yes or on."""
    return environ.get(name, "").strip().lower() in YES


def hooked(environ: "Mapping[str, str]", name: str) -> bool:
    """Is it in LJPERF_HOOKS, the image's own list, separated by commas?"""
    return name in environ.get("LJPERF_HOOKS", "").replace(" ", "").split(",")


def recomputes(environ: "Mapping[str, str]") -> bool:
    """Are layers to be recomputed by plan?"""
    return asked(environ, "CHECKPOINT_OPTIMIZATION")


def compiles_trainer(environ: "Mapping[str, str]") -> bool:
    """Does `torch_compile=True` mean blocks under ZeRO-3, too?"""
    return hooked(environ, "compile")


def compiles(environ: "Mapping[str, str]") -> bool:
    """The same for loops written by hand."""
    return asked(environ, "LJ_COMPILE") or hooked(environ, "compile")


def checks(environ: "Mapping[str, str]") -> bool:
    """Is DeepSpeed's config checked when it is used?"""
    return hooked(environ, "check")


# Module whose execution is awaited, whether the environment asks for it, what then gets the module.
HOOKS: "tuple[tuple[str, Callable[[Mapping[str, str]], bool], str], ...]" = (
    ("transformers.modeling_utils", recomputes, "ljperf.recompute.transformers_models:patch"),
    (
        "deepspeed.runtime.activation_checkpointing.checkpointing",
        recomputes,
        "ljperf.recompute.deepspeed_checkpointing:patch",
    ),
    ("deepspeed.runtime.engine", recomputes, "ljperf.recompute.engines:patch"),
    ("transformers.trainer", compiles_trainer, "ljperf.compiling.trainer:patch"),
    ("deepspeed", compiles, "ljperf.compiling.engine:patch"),
    ("deepspeed", checks, "ljperf.dsconfig.warning:patch"),
)


def wanted(environ: "Mapping[str, str]") -> dict[str, list[str]]:
    """The patches that an environment asks for, by module name."""
    targets: dict[str, list[str]] = {}
    for name, condition, target in HOOKS:
        if condition(environ):
            targets.setdefault(name, []).append(target)
    return targets


def say(text: str) -> None:
    """One line on rank 0, to stderr: a program's stdout is its own."""
    environ = os.environ
    rank = environ.get("RANK") or environ.get("OMPI_COMM_WORLD_RANK") or environ.get("SLURM_PROCID") or "0"
    if rank == "0" and sys.stderr is not None:
        sys.stderr.write(f"ljperf: {text}\n")


def apply(module: "ModuleType", targets: "Sequence[str]") -> None:
    """Give a module to each patch; what fails is one line, and the module is as it was."""
    for target in targets:
        place, _, name = target.partition(":")
        try:
            __import__(place)
            getattr(sys.modules[place], name)(module)
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            say(f"{module.__name__} stays as it is: {target.partition(':')[0]}: {type(error).__name__}: {reason}")


class AfterExecution:
    """A finder that finds what the others find, and has a module patched right after its execution."""

    mark = MARK

    def __init__(self, targets: dict[str, list[str]]) -> None:
        self.targets = targets

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The spec of an awaited module from the other finders; None for every other name."""
        if name not in self.targets:
            return None
        spec = self.found_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self.patch_after(spec.loader, name)
        return spec

    def found_by_others(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
    ) -> "ModuleSpec | None":
        """Asked directly: leaving `sys.meta_path` for a moment would be seen by other threads."""
        for finder in list(sys.meta_path):
            if getattr(finder, "mark", None) != MARK and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def patch_after(self, loader: "Any", name: str) -> None:
        """The loader stays itself, so that inspect, linecache and pickle see nothing new."""
        execute = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            execute(module)
            if module.__name__ == name:  # an archive's loader is shared by all its modules
                loader.__dict__.pop("exec_module", None)
                apply(module, self.targets[name])

        try:
            loader.exec_module = exec_module
        except AttributeError:
            say(f"{name} stays as it is: its loader, a {type(loader).__name__}, takes no hook")


def install(environ: "Mapping[str, str]" = os.environ) -> None:
    """Await the modules that the environment asks for; those already there are patched now. May be called again."""
    targets = wanted(environ)
    if not targets:
        return
    finder: Any = next((each for each in sys.meta_path if getattr(each, "mark", None) == MARK), None)
    if finder is None:
        finder = AfterExecution({})
        sys.meta_path.insert(0, finder)
    for name, patches in targets.items():
        known = finder.targets.setdefault(name, [])
        new = [patch for patch in patches if patch not in known]
        known.extend(new)
        if new and name in sys.modules:
            patch_present(sys.modules[name], new)


def patch_present(module: "ModuleType", targets: "Sequence[str]") -> None:
    """A module that was imported before us; one that is still being executed can no longer be awaited."""
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        say(f"{module.__name__} stays as it is: its import had begun")
    else:
        apply(module, targets)


install()
