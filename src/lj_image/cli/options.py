"""Options that several commands have."""

from __future__ import annotations

import click

from lj_image.release.builder_choice import BUILDERS

builder_option = click.option(
    "--builder",
    type=click.Choice(BUILDERS),
    default="auto",
    show_default=True,
    help="docker needs an engine; oci assembles the layers itself; auto takes docker where an engine answers.",
)
