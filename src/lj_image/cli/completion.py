"""`lj-image completion`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def command(app: App, shell: str) -> None:
    """Print the script that completes commands, releases, variants, regions and components in a shell.

    \b
    lj-image completion bash > ~/.local/share/bash-completion/completions/lj-image
    lj-image completion zsh > "${fpath[1]}/_lj-image"
    lj-image completion fish > ~/.config/fish/completions/lj-image.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "lj-image", "_LJ_IMAGE_COMPLETE").source())
