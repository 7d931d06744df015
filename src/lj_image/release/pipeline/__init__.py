"""A release, asked for by name, becomes a published one in a single run that can be taken up again wherever it ended.

In: what a person asks for, and what a run works with (`run.Means`). Out: `report.RunReport`, and files in a folder.
Each step is a value (`step.Step`); what it came to is kept (`state.States`), and believed only while its inputs are the
same and its outcome still holds. The one public function is `run.release`. Never prints, never imports `cli`.
"""
