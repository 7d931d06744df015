"""PyTorch: `torch.__version__`, from the file that torch itself takes it from."""

from __future__ import annotations

from lj_image.catalog.versions import keeps_promise, public
from lj_image.verify.probes.probe import Single


def keeps(promised: str, found: str) -> bool:
    """Compare without the local part that the promise does not have: wheels of 2.5.1 call themselves 2.5.1+cu124.

    A promised local part may be the short form: 2.6.0a0+ecf3bae of 2.6.0a0+ecf3bae40a.nv25.1.
    """
    if "+" in promised:
        return found.startswith(promised)
    return keeps_promise(promised, public(found))


PROBE = Single({"op": "torch_version"}, keeps=keeps).probe()
