"""Python: the interpreter that `python3` starts."""

from __future__ import annotations

from lj_image.verify.probes.probe import Single, keeps_or_refines

PROBE = Single({"op": "python_version"}, keeps=keeps_or_refines).probe()
