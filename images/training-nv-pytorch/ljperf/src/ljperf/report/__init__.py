"""How results are shown: text tables, SVG and HTML drawings, files that appear whole.

In: headers and rows, series of numbers, text. Out: text, or a file. Knows nothing of training: it must never import
torch, nor any other room.
"""
