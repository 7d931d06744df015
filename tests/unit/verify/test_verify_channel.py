from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_shell import LocalEngine

from lj_image.verify.backend import host_of
from lj_image.verify.channel import Channel, ChannelError


@pytest.fixture
def channel() -> Iterator[Channel]:
    engine = LocalEngine()
    yield Channel(engine.pipe)
    engine.stop()


def test_commands_give_output_and_exit_code_one_after_the_other(channel: Channel) -> None:
    for code in (0, 3, 255):
        output = channel.run(f"echo out; echo err >&2; exit {code}")
        assert (output.exit_code, output.stdout, output.stderr) == (code, b"out\n", b"err\n")


def test_output_may_be_binary_and_without_a_last_newline(channel: Channel) -> None:
    assert channel.run(r"printf '\000\377a\nb'").stdout == b"\0\xffa\nb"


def test_large_output_on_both_streams_arrives_whole(channel: Channel) -> None:
    output = channel.run("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2")
    assert (len(output.stdout), len(output.stderr)) == (3_000_000, 2_000_000)


def test_stdin_is_passed_as_it_is(channel: Channel) -> None:
    text = "a 'quoted' $HOME `line`\n\\\n"
    assert channel.run("cat", stdin=text).text == f"{text}\n"


def test_a_command_cannot_eat_the_commands_after_it(channel: Channel) -> None:
    assert channel.run("cat").stdout == b""
    assert channel.run("echo still here").text == "still here\n"


@pytest.mark.parametrize("command", ["if", "echo 'open", "set -e; false; echo x", "exec false", "cd / && return 1"])
def test_a_command_that_breaks_off_leaves_the_channel_usable(channel: Channel, command: str) -> None:
    assert channel.run(command).exit_code != 0
    assert channel.run("echo ready").text == "ready\n"


def test_a_command_in_the_background_does_not_hold_the_channel(channel: Channel) -> None:
    assert channel.run("sleep 30 & echo started", timeout_s=5).text == "started\n"


def test_a_killed_shell_is_an_error_that_names_the_command(channel: Channel) -> None:
    with pytest.raises(ChannelError, match=r"the shell inside the container ended.*kill -9"):
        channel.run("kill -9 $PPID")
    assert channel.closed


def test_a_hanging_command_ends_in_time_and_shows_what_it_printed(channel: Channel) -> None:
    with pytest.raises(ChannelError, match=r"no end after 0.3 s: echo busy; sleep 30") as failure:
        channel.run("echo busy; sleep 30", timeout_s=0.3)
    assert failure.value.hint == "it had printed: busy"
    with pytest.raises(ChannelError, match="closed"):
        channel.run("true")


def test_testinfra_runs_through_the_channel(channel: Channel) -> None:
    class Shell:
        name = "box"
        run = channel.run

    host = host_of(Shell())
    assert host.check_output("echo %s", "it's") == "it's"
    assert host.file("/etc/passwd").exists
    assert host.run("printf '\\303\\244'").stdout == "ä"
    with pytest.raises(ChannelError, match=r"no end after 0.3 s"):
        host.run("sleep 30", timeout_s=0.3)
