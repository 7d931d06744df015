"""Stand-ins of the same shape for what a test machine cannot reach: the vendor's base, index and archive; a registry.

`base` makes the NGC image, `vendor` says what both indexes and the archive server offer, `libraries` compiles what
answers a version question, `registries` starts a registry, and `commands` runs the real command line beside them.
"""
