"""Programs that keep logins: `docker-credential-NAME get`, a host on stdin, JSON on stdout.

Protocol: https://github.com/docker/docker-credential-helpers#development
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Final

from lj_image.errors import PublishError
from lj_image.registry.login import TOKEN_USER, Credentials, key_of

_LONGEST_S: Final = 60.0
"""Long enough for a person who has to unlock a key ring."""
_NO_LOGIN: Final = "credentials not found"
"""What a helper prints, among other words, when it has no login for a host (credentials/error.go)."""


def program_of(helper: str) -> str:
    """Return the program of a helper that a config names."""
    return f"docker-credential-{helper}"


def ask_helper(program: str, host: str, *, longest_s: float = _LONGEST_S) -> Credentials | None:
    """Ask a helper; None where it knows no login. Raises PublishError where it fails, or is silent for so long."""
    if (path := shutil.which(program)) is None:
        raise _failed(program, host, "it is not installed")
    try:
        done = subprocess.run(
            [path, "get"], input=key_of(host).encode(), capture_output=True, check=False, timeout=longest_s
        )
    except subprocess.TimeoutExpired:  # not chained: it has what was printed
        raise _failed(program, host, f"it did not answer in {longest_s:.0f} s") from None
    except OSError as error:
        raise _failed(program, host, f"it cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        words = done.stdout.decode(errors="replace").strip()
        if _NO_LOGIN in words:
            return None
        if "Secret" in words:  # a helper that fails after it has answered
            words = "it failed, and its words are withheld: they hold a secret"
        raise _failed(program, host, words or f"it ended with {done.returncode} and no word")
    return _answered(done.stdout, program, host)


def _answered(answer: bytes, program: str, host: str) -> Credentials | None:
    try:
        values = json.loads(answer)
        username, secret = str(values["Username"]), str(values["Secret"])
    except (ValueError, KeyError, TypeError):  # not chained: the helper's answer holds the secret
        raise PublishError(f"{program} gave no valid answer for {host}", hint=f"run: docker login {host}") from None
    if not username and not secret:  # docker-credential-pass, for a host that it does not know
        return None
    return Credentials("", "", secret) if username == TOKEN_USER else Credentials(username, secret)


def _failed(program: str, host: str, words: str) -> PublishError:
    return PublishError(f"{program} has no login for {host}: {words}", hint=f"run: docker login {host}")
