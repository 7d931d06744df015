"""Proof that two images are one tree: every path of both, with all that a container can see of it except its times.

In come an engine's client, the paths of archives, or a release's record; out go frozen values and text. Never imports
cli, and knows an engine only in `sides.py`.
"""
