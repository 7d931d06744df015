"""Release notes: the manifests and the record of a release become a note in each language of its family.

In: a catalog, a release and its record. Out: Markdown, HTML and JSON. It knows no engine and no network.
"""

from lj_image.release.notes.facts import note_facts
from lj_image.release.notes.files import write_note, write_notes
from lj_image.release.notes.note import NoteFacts
from lj_image.release.notes.render import Form, render_notes

__all__ = ["Form", "NoteFacts", "note_facts", "render_notes", "write_note", "write_notes"]
