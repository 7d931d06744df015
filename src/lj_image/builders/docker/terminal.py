"""The terminal that a person sits at: raw while a container has it, its size as it changes, and signals as errors."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from lj_image.errors import Interrupted

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


def has_terminal() -> bool:
    """Say whether a person types and reads here; with one of the two redirected, a terminal only gets in the way."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def terminal_size(descriptor: int) -> tuple[int, int] | None:
    """Return lines and columns of a terminal; None when it does not say."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        return None
    return (size.lines, size.columns) if size.lines and size.columns else None


@contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Hand every key on as it is typed, Ctrl-C too; afterwards the terminal is what it was before."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed ahead stays
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def size_changes() -> Iterator[int]:
    """Give a file descriptor that becomes readable when the terminal's size has changed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)

    def note(number: int, frame: FrameType | None) -> None:
        with suppress(BlockingIOError):  # it is readable already
            os.write(writer, b"\0")

    before = signal.signal(signal.SIGWINCH, note)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)


@contextmanager
def ending_signals() -> Iterator[None]:
    """Within this block SIGTERM and SIGHUP raise Interrupted, so that what was begun is taken away."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(f"stopped by {signal.Signals(number).name}")

    before = {number: signal.signal(number, stop) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back while something must not be left half done; they come right afterwards."""
    blocked = {signal.SIGINT, *ENDING}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
