"""Where pip puts what in an image, derived from what is known of its base."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lj_image.catalog.release import BaseFacts
from lj_image.errors import BuildError, Location


@dataclass(frozen=True, slots=True)
class Scheme:
    """The places of an installation, as paths of the image without a leading slash."""

    site_packages: str
    """Of pure and of compiled distributions alike, such as usr/local/lib/python3.11/dist-packages."""
    prefix: str
    """Of data files, such as usr/local."""
    python: str
    """Major and minor version, such as 3.11."""
    executable: str
    """The interpreter as scripts name it: /usr/bin/python3."""
    pip: str
    """The version of the base's pip, whose scripts ours are like."""

    @property
    def scripts(self) -> str:
        """The folder of scripts and console entry points."""
        return f"{self.prefix}/bin"

    @property
    def headers(self) -> str:
        """The folder below which each distribution has one with its headers.

        Debian's posix_local changes where libraries go, and leaves headers with the interpreter's own.
        """
        is_local = self.site_packages.endswith("/dist-packages")
        prefix = self.prefix.removesuffix("/local") if is_local else self.prefix
        return f"{prefix}/include/python{self.python}"


def scheme_of(facts: BaseFacts) -> Scheme:
    """Return where pip installs in this base; raises BuildError when its folder is none that pip would use.

    Schemes: CPython `Lib/sysconfig.py`, posix_prefix, and posix_local as Debian patches it.
    """
    found = re.fullmatch(r"/(.+)/lib/python(\d+\.\d+)/(?:site|dist)-packages", facts.site_packages)
    if found is None:
        raise BuildError(
            f"the base's packages lie at {facts.site_packages}, where the oci builder cannot tell a prefix",
            hint="build with: --builder docker",
            location=Location(facts.file),
        )
    prefix, python = found.groups()
    return Scheme(
        site_packages=facts.site_packages.strip("/"),
        prefix=prefix,
        python=python,
        executable=facts.executable,
        pip=facts.packages.get("pip", ""),
    )
