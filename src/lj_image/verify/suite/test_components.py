"""Each component has its promised version, and can be imported where it says so."""

from lj_image.catalog.release import Component
from lj_image.verify.facts import Facts, import_question
from lj_image.verify.subject import Subject
from lj_image.verify.verdict import Verdict


def test_component(component: Component, subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """Its probe finds the promised version."""
    verdict.about(component.id)
    verdict.give_finding(facts.finding(subject, component))


def test_imports(imported: tuple[Component, str], subject: Subject, facts: Facts, verdict: Verdict) -> None:
    """Its module can be imported."""
    component, module = imported
    verdict.about(component.id)
    answer = facts.answer(import_question(subject, module))
    found = answer.value or {"imported": False, "message": answer.error}
    verdict.give(
        found["imported"],
        expected=f"import {module}",
        found=f"import {module}" if found["imported"] else "an error",
        message=found["message"] or "",
    )
