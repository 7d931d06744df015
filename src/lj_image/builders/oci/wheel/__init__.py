"""A wheel becomes the files that pip's installation of it leaves on disk; nothing of its payload is read here.

In: a wheel's file, and the places of a base. Out: entries. Format: the binary distribution format of the PyPA
(https://packaging.python.org/specifications/binary-distribution-format/); where installers disagree, pip is followed.
"""
