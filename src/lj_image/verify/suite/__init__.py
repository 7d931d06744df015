"""The tests that every image has to pass, generated from its plan by `plugin`. Run by `lj-image verify` only."""
