"""Files that a person edits are written: a new release, a version set in place, a project from nothing, their schemas.

In: the catalog and what is asked for. Out: text, written by rename. Never imports locks, plans, builders or engines.
"""
