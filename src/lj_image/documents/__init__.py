"""YAML text becomes plain values with places, then validated models whose findings name line and column.

Used by the catalog and the config; knows no schema of its own. `nodes` is cheap to import, `models` brings pydantic.
"""
