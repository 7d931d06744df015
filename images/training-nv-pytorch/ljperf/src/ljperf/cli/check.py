"""`ljperf check`: what a DeepSpeed config really does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ljperf.dsconfig.report import Checked


@click.command(
    "check",
    epilog="Exit code: 1 with an error (DeepSpeed or Transformers will refuse), 0 with warnings only, or nothing.",
)
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--transformers/--no-transformers",
    default=None,
    help='Whether Transformers or Accelerate fills "auto" in; as the config looks: with "auto" in it, yes.',
)
@click.option("--world-size", type=click.IntRange(1), metavar="N", help="Ranks in all, for the batch arithmetic.")
@click.option("--hidden-size", "hidden", type=click.IntRange(1), metavar="H", help="The model's, to name sizes.")
@click.option("--model", help="A model of `ljperf benchmark`, in place of --hidden-size.")
@click.option("--arguments", type=click.Path(dir_okay=False, path_type=Path), help="TrainingArguments, JSON or YAML.")
@click.option("--deepspeed", "version", metavar="VERSION", help="Check for that one; else for the one installed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    config: Path,
    transformers: bool | None,
    world_size: int | None,
    hidden: int | None,
    model: str | None,
    arguments: Path | None,
    version: str | None,
    as_json: bool,
) -> int:
    """Say what a DeepSpeed config really does, and what is wrong with it.

    Neither PyTorch nor DeepSpeed is imported. Findings carry the line, and the JSON pointer of what they speak of.
    """
    from ljperf.dsconfig.report import checked, document, text

    result = checked(
        config,
        transformers=transformers,
        world_size=world_size,
        hidden=hidden or _hidden_of(model),
        arguments=_arguments(arguments),
        deepspeed_version=version,
    )
    click.echo(json.dumps(document(result), indent=2) if as_json else text(result))
    return _exit_code(result)


def _exit_code(result: Checked) -> int:
    return 1 if any(line.finding.severity == "error" for line in result.lines) else 0


def _hidden_of(model: str | None) -> int | None:
    if model is None:
        return None
    from ljperf.models.catalog import model_named

    return model_named(model.rpartition("/")[2]).hidden


def _arguments(path: Path | None) -> dict[str, Any]:
    """TrainingArguments as a mapping: training_args of a YAML or JSON file."""
    if path is None:
        return {}
    import yaml

    from ljperf.errors import UsageError

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as failure:
        reason = str(failure).partition("\n")[0]
        raise UsageError(f"cannot be read: {reason}", location=str(path)) from None
    if not isinstance(content, dict):
        raise UsageError("must hold names and values", hint="learning_rate: 1.0e-5", location=str(path))
    return {str(name): value for name, value in content.items()}
