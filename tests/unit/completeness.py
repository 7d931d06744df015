"""What a component kind and a command consist of, and where each part goes; `test_completeness` asks for all of it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_args

import click

from lj_image import plan
from lj_image.catalog import release, schema
from lj_image.cli import module_of

ROOT = Path(__file__).parents[2]

WITHOUT_LAYER = {"base": "comes with the base image"}
"""Kind -> why no layer and no template is made for it."""

WITHOUT_JSON = {
    "fetch": "it makes files; its one line says how many",
    "render": "its result is a Dockerfile",
    "refs": "its lines are for a shell: a reference each, and nothing else",
    "base": "its result is a YAML file",
    "schema": "its result is JSON",
    "completion": "its result is a script for a shell",
    "shell": "its output is that of the command inside",
}
"""Command -> why it has no `--json`."""


@dataclass(frozen=True)
class Kind:
    """A component kind: its name in YAML, and its model in the schema."""

    name: str
    model: str

    @property
    def value(self) -> str | None:
        """The name of its class among the values of a release."""
        found = (item for item in get_args(release.ComponentSource) if item.kind == self.name)
        return next((item.__name__ for item in found), None)


def kinds() -> tuple[Kind, ...]:
    """Return every kind that `image.yaml` may name."""
    union, *_ = get_args(schema.Source)
    return tuple(Kind(get_args(item.model_fields["kind"].annotation)[0], item.__name__) for item in get_args(union))


def missing_of_kinds(found: Iterable[Kind]) -> list[str]:
    """Return what is missing for each kind: what to add, and where."""
    return [f"kind {kind.name!r}: {part}" for kind in found for part in filter(None, (ask(kind) for ask in KIND_PARTS))]


def missing_of_commands(commands: Iterable[str], without_json: Mapping[str, str]) -> list[str]:
    """Return what is missing for each command: what to add, and where."""
    return [
        f"command {name!r}: {part}"
        for name in commands
        for part in filter(None, (ask(name, without_json) for ask in COMMAND_PARTS))
    ]


def _text(path: str) -> str:
    file = ROOT / path
    return file.read_text() if file.exists() else ""


def _source_of(path: str, function: str) -> str:
    """Return the text of one function or method of a module."""
    text = _text(path).replace("\n) ->", "\n  ) ->")
    if (start := re.search(rf"^( *)def {function}\(", text, re.M)) is None:
        return ""
    end = re.compile(rf"^ {{0,{len(start[1])}}}\S", re.M).search(text, start.end())
    return text[start.start() : end.start() if end else len(text)]


def _has_case(text: str, name: str) -> bool:
    return re.search(rf"\bcase [^:]*\b{re.escape(name)}\(", text) is not None


def _value_class(kind: Kind) -> str | None:
    if kind.value is not None and is_dataclass(getattr(release, kind.value)):
        return None
    return f'a frozen dataclass with `kind = "{kind.name}"`, in catalog/release.py and its ComponentSource'


def _resolution(kind: Kind) -> str | None:
    known = _has_case(_text("src/lj_image/catalog/resolve.py"), f"schema.{kind.model}")
    return None if known else f"`case schema.{kind.model}()` in catalog/resolve.py: _source"


def _layer(kind: Kind) -> str | None:
    if kind.name in WITHOUT_LAYER:
        return None
    has_class = any(item.kind == kind.name for item in get_args(plan.Layer))
    if has_class and kind.value and _has_case(_source_of("src/lj_image/plan.py", "_layers_of"), kind.value):
        return None
    return f'a layer with `kind = "{kind.name}"` in plan.py, and its `case` in _layers_of; or why not, in WITHOUT_LAYER'


def _template(kind: Kind) -> str | None:
    if kind.name in WITHOUT_LAYER or (ROOT / "templates" / "components" / f"{kind.name}.j2").exists():
        return None
    return f"templates/components/{kind.name}.j2, in both forms (mounts, staged)"


def _oci_step(kind: Kind) -> str | None:
    layer = next((item.__name__ for item in get_args(plan.Layer) if item.kind == kind.name), None)
    known = layer and _has_case(_source_of("src/lj_image/builders/oci/recipe.py", "sources"), layer)
    if known or kind.name in WITHOUT_LAYER:
        return None
    return (
        "its layer's `case` in builders/oci/recipe.py: sources (and _roots); where only a container can make it, "
        "with AptLayer there and in assemble.py: require_assemblable"
    )


def _probe(kind: Kind) -> str | None:
    known = kind.value and _has_case(_source_of("src/lj_image/verify/probes/__init__.py", "probe_name"), kind.value)
    return None if known else "its `case` in verify/probes/__init__.py: probe_name"


def _sample(kind: Kind) -> str | None:
    sampled = re.search(rf"\bkind: {kind.name}\b", _text("tests/families/every-kind/image.yaml"))
    return None if sampled else f"a component of kind {kind.name} in tests/families/every-kind, built by an e2e test"


def _reviewed(kind: Kind) -> str | None:
    golden = _text("tests/unit/golden/every-kind.mounts.Dockerfile")
    if kind.name in WITHOUT_LAYER or re.search(rf"^# .*, {kind.name}$", golden, re.M):
        return None
    return f"a component of kind {kind.name} in EVERY_KIND of tests/unit/test_dockerfile.py, and UPDATE_GOLDEN=1"


def _description(kind: Kind) -> str | None:
    told = f"| `{kind.name}` |" in _text("CONTRIBUTING.md")
    return None if told else f"a line `| \\`{kind.name}\\` | … |` in CONTRIBUTING.md: Kinds of components"


KIND_PARTS: tuple[Callable[[Kind], str | None], ...] = (
    *(_value_class, _resolution, _layer, _template, _oci_step, _probe, _sample, _reviewed, _description),
)

Ask = Callable[[str, Mapping[str, str]], str | None]


def command_of(name: str) -> click.Command | None:
    """Return a command, if there is such a module and it has one."""
    try:
        found = getattr(importlib.import_module(f"lj_image.cli.{module_of(name)}"), "command", None)
    except ModuleNotFoundError:
        return None
    return found if isinstance(found, click.Command) else None


def _module(name: str, _: Any) -> str | None:
    return None if command_of(name) else f"cli/{name}.py with a click command named `command`"


def _example(name: str, _: Any) -> str | None:
    command = command_of(name)
    given = re.search(rf"\x08\n(.*\n)*\s*lj-image {name}\b", command.help or "") if command else None
    return None if given else f"an example `lj-image {name} …` in its docstring, after a line with \\b"


def _reference(name: str, _: Any) -> str | None:
    return None if f"\n## lj-image {name}\n" in _text("docs/cli.md") else "its section in docs/cli.md: make generate"


def _json(name: str, without: Mapping[str, str]) -> str | None:
    command = command_of(name)
    if name in without or (command and any("--json" in options for options in _option_names(command))):
        return None
    return "`--json`; or why it needs none, in WITHOUT_JSON of tests/unit/completeness.py"


def _option_names(command: click.Command) -> Iterator[list[str]]:
    """Yield the names of each option, those of commands below it included."""
    yield from (option.opts for option in command.params)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _option_names(below)


def _test(name: str, _: Any) -> str | None:
    called = re.compile(rf"""[\[(,]\s*["']{name}["']\s*[\]),]""")  # run(["name", …]), or project.run("name", …)
    files = (path for path in (ROOT / "tests").rglob("*.py") if "completeness" not in path.name)
    if any(called.search(path.read_text()) for path in files):
        return None
    return f'a test that runs ["{name}", …], in tests/unit/cli'


def _told(name: str, _: Any) -> str | None:
    pages = (ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if path.name != "cli.md"))
    told = any(f"lj-image {name}" in path.read_text() for path in pages)
    return None if told else f"a line `lj-image {name}` in README.md: Commands"


COMMAND_PARTS: tuple[Ask, ...] = (_module, _example, _reference, _json, _test, _told)


def rooms() -> tuple[str, ...]:
    """Return the folders and single modules of the package, as the map of docs/architecture.md writes them."""
    package = ROOT / "src" / "lj_image"
    folders = (path.parent.relative_to(package).as_posix() + "/" for path in package.rglob("*/__init__.py"))
    modules = (path.name for path in package.glob("*.py") if path.name != "__init__.py")
    return tuple(sorted((*folders, *modules)))


def missing_on_map(found: Iterable[str]) -> list[str]:
    """Return what is missing in docs/architecture.md: a row for each room, with its public function."""
    told = _text("docs/architecture.md")
    return [f"a row for `{room}` in docs/architecture.md" for room in found if f"`{room}`" not in told]
