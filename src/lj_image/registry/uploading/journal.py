"""Where uploads stand."""


class Journal:
    """Where uploads stand."""
