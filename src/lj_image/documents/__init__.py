"""YAML text becomes plain values with places, then validated models whose findings name line and column.

Used by the catalog and the config. Knows no schema of its own.
"""

from lj_image.documents.models import read_model, validate
from lj_image.documents.nodes import Document, parse_document, read_document

__all__ = ["Document", "parse_document", "read_document", "read_model", "validate"]
