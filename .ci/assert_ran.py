"""Fail unless pytest's reports tell of tests that ran, among them tests with an engine and a registry."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree


def main(files: list[str]) -> str | None:
    """Print the sums; return what is wrong, if anything is."""
    ran: dict[bool, int] = {True: 0, False: 0}
    for case in (case for file in files for case in ElementTree.parse(file).iter("testcase")):
        ran["integration" in case.get("classname", "")] += case.find("skipped") is None
    print(f"ran: {ran[False]} unit tests, {ran[True]} integration tests")
    return None if all(ran.values()) else "no unit test or no integration test ran"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
