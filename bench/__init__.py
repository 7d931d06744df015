"""Measurements as ratios: every side of a figure runs in the same minutes, in turn, on the same machine."""
