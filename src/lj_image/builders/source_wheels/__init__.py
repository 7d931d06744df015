"""A source distribution -> its wheel, whoever builds it: the note of it, the indexes it is built from, its very bytes.

In: a locked source distribution in the artifact store. Out: a wheel in the store, noted so that it is built once.
Nothing here may import an engine's library: one builder runs the source's code in a container, the other on this
machine.
"""
