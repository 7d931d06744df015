"""Every component kind and every command has all its parts; what is missing is named, with the place to add it."""

from __future__ import annotations

from lj_image.cli import COMMANDS
from unit.completeness import (
    WITHOUT_JSON,
    WITHOUT_LAYER,
    Kind,
    command_of,
    kinds,
    missing_of_commands,
    missing_of_kinds,
    missing_on_map,
    rooms,
)


def test_every_component_kind_has_all_its_parts() -> None:
    missing = missing_of_kinds(kinds())
    assert not missing, "\n".join(("add:", *missing))


def test_every_command_has_all_its_parts() -> None:
    missing = missing_of_commands(COMMANDS, WITHOUT_JSON)
    assert not missing, "\n".join(("add:", *missing))


def test_every_room_is_on_the_map() -> None:
    in_another = {"builders/", "verify/probes/", "verify/suite/"}  # told with the room around or inside
    assert missing_on_map(room for room in rooms() if room not in in_another) == []
    assert missing_on_map(["attic/"]) == ["a row for `attic/` in docs/architecture.md"]


def test_an_excuse_is_for_something_that_there_is_and_that_needs_it() -> None:
    assert set(WITHOUT_LAYER) <= {kind.name for kind in kinds()}
    assert set(WITHOUT_JSON) <= set(COMMANDS)
    for name in WITHOUT_JSON:
        command = command_of(name)
        assert command is not None
        assert not any("--json" in option.opts for option in command.params), f"{name} has --json: no excuse needed"


def test_a_made_up_kind_lacks_everything_and_is_told_where_to_add_it() -> None:
    assert missing_of_kinds([Kind("conda", "CondaKind")]) == [
        "kind 'conda': a frozen dataclass with `kind = \"conda\"`, in catalog/release.py and its ComponentSource",
        "kind 'conda': `case schema.CondaKind()` in catalog/resolve.py: _source",
        "kind 'conda': a layer with `kind = \"conda\"` in plan.py, and its `case` in _layers_of; "
        "or why not, in WITHOUT_LAYER",
        "kind 'conda': templates/components/conda.j2, in both forms (mounts, staged)",
        "kind 'conda': its layer's `case` in builders/oci/recipe.py: sources (and _roots); where only a container can "
        "make it, with AptLayer there and in assemble.py: require_assemblable",
        "kind 'conda': its `case` in verify/probes/__init__.py: probe_name",
        "kind 'conda': a component of kind conda in tests/families/every-kind, built by an e2e test",
        "kind 'conda': a component of kind conda in EVERY_KIND of tests/unit/test_dockerfile.py, and UPDATE_GOLDEN=1",
        "kind 'conda': a line `| \\`conda\\` | … |` in CONTRIBUTING.md: Kinds of components",
    ]


def test_a_made_up_command_lacks_everything_and_is_told_where_to_add_it() -> None:
    assert missing_of_commands(["conjure"], WITHOUT_JSON) == [
        "command 'conjure': cli/conjure.py with a click command named `command`",
        "command 'conjure': an example `lj-image conjure …` in its docstring, after a line with \\b",
        "command 'conjure': its section in docs/cli.md: make generate",
        "command 'conjure': `--json`; or why it needs none, in WITHOUT_JSON of tests/unit/completeness.py",
        "command 'conjure': a test that runs [\"conjure\", …], in tests/unit/cli",
        "command 'conjure': a line `lj-image conjure` in README.md: Commands",
    ]


def test_an_excuse_is_taken() -> None:
    assert not any("--json" in line for line in missing_of_commands(["conjure"], {"conjure": "it has no result"}))
