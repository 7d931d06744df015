"""`images/` on disk becomes a Release, a frozen value with everything resolved.

In: YAML files that people edit. Out: `Catalog`, `Release`. Never imports a lock, an engine or a registry.
"""
