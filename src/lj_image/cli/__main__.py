"""`python -m lj_image.cli` is `lj-image`."""

from lj_image.cli import main

main()
