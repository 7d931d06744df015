"""Content becomes published: everywhere complete first, then the tags, and each tag is read back.

In: an image or an index, and places with their tags. Out: what each place has now, and what its tags held before.
Knows no release, no record and no manifest of ours.
"""
