from __future__ import annotations

import pytest

from lj_image.lock.ownership import owners


@pytest.mark.parametrize(
    ("named", "required_by", "expected"),
    [
        # what one component reaches alone is its own, over several steps
        ({"a": "A"}, {"a": (), "x": ("a",), "y": ("x",)}, {"a": "A", "x": "A", "y": "A"}),
        # what two reach is shared, and so is what only that reaches
        ({"a": "A", "b": "B"}, {"a": (), "b": (), "x": ("a", "b"), "y": ("x",)}, {"x": "shared", "y": "shared"}),
        # a walk stops at another component's distribution
        ({"a": "A", "b": "B"}, {"a": (), "b": ("a",), "x": ("b",)}, {"a": "A", "b": "B", "x": "B"}),
        # ... although it goes on where that distribution is also required otherwise
        ({"a": "A", "b": "B"}, {"a": (), "b": ("a",), "x": ("a", "b")}, {"x": "shared"}),
        # several distributions of one component do not share with each other
        ({"a1": "A", "a2": "A"}, {"a1": (), "a2": (), "x": ("a1", "a2")}, {"x": "A"}),
        # a circle ends
        ({"a": "A"}, {"a": ("y",), "x": ("a", "y"), "y": ("x",)}, {"x": "A", "y": "A"}),
        # what nothing reaches is shared rather than lost
        ({"a": "A"}, {"a": (), "x": ()}, {"x": "shared"}),
    ],
)
def test_owner_is_the_only_component_whose_walk_reaches_it(
    named: dict[str, str], required_by: dict[str, tuple[str, ...]], expected: dict[str, str]
) -> None:
    found = owners(named, required_by)
    assert {name: found[name] for name in expected} == expected
    assert found.keys() == required_by.keys()
