"""Whether this machine can do what the commands need: engine, cache, config, indexes, registries, tools.

In: the environment, the config, the catalog. Out: `Finding`s, each with what to do about it. Never imports the CLI,
never shows a secret, and changes nothing.
"""
