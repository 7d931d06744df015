"""Compare: two releases, images or archives become Contents, and those a Diff that is told in several forms.

In come resolved releases, an engine's client or paths; out go frozen values and text. Never imports cli, and knows an
engine only in `images.py`.
"""
