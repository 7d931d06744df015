"""The command line: click only. Parse, call one function, show the result; one module per command, loaded late.

`COMMANDS` holds every command's one-line help, so that `lj-image --help` imports no command at all.
"""

from __future__ import annotations

import errno
import gc
import importlib
import keyword
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from lj_image import __version__
from lj_image.cli.app import App
from lj_image.errors import LjImageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Final = {
    "list": "List images, releases and variants.",
    "show": "Show a release: its components and where they come from.",
    "init": "Write a project with a first image into an empty folder.",
    "new": "Write the file of a new release, ready to be edited.",
    "set": "Set versions in a release's file, and change nothing else in it.",
    "schema": "Print the JSON Schema of the files that you edit, for editors.",
    "lint": "Check every file of the catalog, without a network.",
    "lock": "Resolve a release to exact files and write its lock.",
    "why": "Say why a distribution is in an image.",
    "outdated": "Say what the indexes have that is newer, and what holds it back.",
    "fetch": "Download the files of a lock into the artifact store.",
    "plan": "Show the layers of a release, and why each stands where it stands.",
    "diff": "Compare two releases, images or archives: versions, licences, layers, bytes to pull.",
    "compare": "Prove that two images hold the same tree, or tell every path that differs.",
    "render": "Write the Dockerfile and its build context.",
    "build": "Build the image of a release.",
    "verify": "Prove that the versions inside an image are those promised.",
    "shell": "Open a shell in a container of a release's image.",
    "push": "Publish a verified release.",
    "promote": "Publish a release from a registry that holds it already.",
    "export": "Write a release as an OCI layout, for a place without a network.",
    "import": "Publish what is in an OCI layout.",
    "status": "Ask registries which image each tag of a release has.",
    "retract": "Take a release's tag away from registries, after asking.",
    "release": "Take a release all the way, from lint to notes; goes on where it ended.",
    "refs": "Print the references of a release, and nothing else.",
    "notes": "Write the notes of a release, in each language of its family.",
    "completion": "Print the script that completes commands and names in a shell.",
    "history": "Show what was built, verified and pushed on this machine.",
    "store": "Look into the artifact store, check it, and make room in it.",
    "cache": "Look into the cache of assembled images and layers, and make room in it.",
    "doctor": "Look at this machine and say what is missing, and how to mend it.",
    "base": "Ask a base image for its Python, platform and packages.",
}


_OF_THE_DISK: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM))


def module_of(name: str) -> str:
    """Return the module of a command; one whose name is Python's own has `_` after it."""
    return f"{name}_" if keyword.iskeyword(name) else name


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the pipeline."""
        return [*COMMANDS]  # `list` is a command: once imported, its module has that name here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"lj_image.cli.{module_of(cmd_name)}")
        command: click.Command = module.command
        if "_LJ_IMAGE_COMPLETE" in os.environ:
            from lj_image.cli.completions import attach

            attach(cmd_name, command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands from the table, without importing them."""
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a mistyped one name the closest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from lj_image.suggest import did_you_mean

            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], COMMANDS, noun='commands')}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lj-image", message="%(prog)s %(version)s")
@click.option("--images", metavar="DIR", help="The folder of images, if it is not ./images or above.")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
@click.pass_context
def cli(ctx: click.Context, images: str | None, debug: bool) -> None:
    """Release engineering for AI container images: one manifest, one image, proven and published.

    \b
    lj-image build 25.02
    lj-image verify 25.02
    lj-image push --region cn-beijing
    """
    app = ctx.ensure_object(App)
    app.images_dir, app.debug = images, debug


def main() -> None:
    """Run a command and end the process with its exit code."""
    # Start-up makes many objects that all stay; looking for garbage among them every 700 finds none.
    gc.set_threshold(20_000)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 usage, 3 partly done, 130 interrupted."""
    app = App()  # made here, since who reports a failure asks it how
    try:
        result: Any = cli.main(arguments, prog_name="lj-image", standalone_mode=False, obj=app)
    except LjImageError as error:
        return _report(error, app.debug)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:  # `lj-image list | head`
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in _OF_THE_DISK:
            raise
        return _report(_disk_error(error), app.debug)
    return result if isinstance(result, int) else 0


def _disk_error(error: OSError) -> LjImageError:
    """Say what a disk refuses, where nobody nearer to it did; most likely the cache is read-only, or full."""
    translated = LjImageError(
        f"{error.strerror}: {error.filename or 'a file of ours'}",
        hint="make room or make it writable; another cache: `cache:` in the config, or LJ_IMAGE_CACHE",
    )
    translated.__cause__ = error
    return translated


def _report(error: LjImageError, debug: bool) -> int:
    first, *rest = error.lines()
    click.echo(click.style("error: ", fg="red", bold=True) + first, err=True)
    for line in rest:
        click.echo(line, err=True)
    if debug:
        import traceback

        traceback.print_exception(error)
    return error.exit_code
