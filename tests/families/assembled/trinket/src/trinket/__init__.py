"""Imported by every Python of the image, through `trinket.pth`."""

from pathlib import Path


def main() -> None:
    """Print what lies beside this file."""
    print("trinket", Path(__file__).with_name("words.txt").read_text().strip())
