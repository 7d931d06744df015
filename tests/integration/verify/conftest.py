"""The workbench is built once for all tests of this folder."""

from verify_workbench import workbench

__all__ = ["workbench"]
