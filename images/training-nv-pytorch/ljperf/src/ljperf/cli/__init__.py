"""The command line: parse, call one function, print. Commands load when they are called."""

from __future__ import annotations

import importlib
import sys
from typing import Final

import click

from ljperf import __version__
from ljperf.errors import LjperfError

# Name -> module below ljperf.cli, and the line in --help, so that help imports no command.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "benchmark": ("benchmark", "Train on synthetic tokens and say how fast, and with how much memory."),
    "plan": ("plan", "Predict the peak memory, and recommend how many layers to recompute."),
    "calibrate": ("calibrate", "Measure this device's two constants of the memory model."),
    "check": ("check", "Say what a DeepSpeed config really does, and what is wrong with it."),
    "ablation": ("ablation", "Measure what each optimisation contributes, step by step."),
    "comm": ("comm", "Sweep collectives and say their bandwidth, and which library answers."),
    "env": ("env", "Say what this machine and this image have."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None if there is no such."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ljperf.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ljperf")
def ljperf() -> None:
    """Benchmark and memory planner for training in this image."""


def main() -> None:
    """Run the command line."""
    run(ljperf)


def run(command: click.Command) -> None:
    """Run a command as the process's own: an expected failure is two short lines, and the exit code says which."""
    try:
        result = command.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except LjperfError as error:
        show(error)
        sys.exit(error.exit_code)
    sys.exit(result if isinstance(result, int) else 0)


def show(error: LjperfError) -> None:
    """Print an expected failure to stderr."""
    where = f"{error.location}: " if error.location else ""
    click.echo(f"ljperf: {where}{error.message}", err=True)
    if error.hint:
        click.echo(f"  {error.hint}", err=True)
