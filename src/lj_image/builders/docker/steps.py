"""Finds the instruction of the Dockerfile behind a step of the engine.

Our Dockerfiles say what each instruction is for, in comments directly above it:

    # layer: vllm
    # component: vllm, xformers
    RUN …

Both engines name their steps by number, each in its own way: BuildKit counts, per stage, what makes a layer; the
classic builder counts every instruction of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

# BuildKit, frontend/dockerfile/dockerfile2llb/convert.go (totalCommands, prefixCommand): what counts for n/m.
COUNTED: Final = frozenset({"ADD", "COPY", "RUN", "WORKDIR"})

_BUILDKIT_NAME = re.compile(r"\[(?:(?P<words>[^\]]*?) +)?(?P<index>\d+)/(?P<total>\d+)\] ")
_CLASSIC_NAME = re.compile(r"Step (?P<index>\d+)/\d+ : ")
_NOTE = re.compile(r"#\s*(?P<key>layer|component)s?:\s*(?P<text>.*\S)", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?([\"']?)(\w+)\1")
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*\S+(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    line: int
    """Where it begins, counted from 1."""
    keyword: str
    """In upper case."""
    text: str
    """Its first line."""
    layer: str | None = None
    components: tuple[str, ...] = ()


@dataclass(slots=True)
class _Stage:
    name: str
    base: Instruction
    layers: list[Instruction] = field(default_factory=list)


class DockerfileSteps:
    """The instructions of a Dockerfile, found by the names that engines give to steps."""

    def __init__(self, dockerfile: str) -> None:
        self.instructions = tuple(_instructions(dockerfile))
        self._stages = tuple(_stages(self.instructions))

    def of_buildkit(self, name: str) -> Instruction | None:
        """Return the instruction behind a name such as `[builder 2/3] RUN make`.

        Counted from the end: whether FROM counts depends on the base, and triggers of the base come first.
        """
        match = _BUILDKIT_NAME.match(name)
        stage = self._stage(match["words"] or "") if match else None
        if not match or not stage:
            return None
        from_end = int(match["total"]) - int(match["index"])
        return stage.layers[-1 - from_end] if from_end < len(stage.layers) else stage.base

    def of_classic(self, name: str) -> Instruction | None:
        """Return the instruction behind a line such as `Step 2/7 : RUN make`."""
        match = _CLASSIC_NAME.match(name)
        if not match or int(match["index"]) > len(self.instructions):
            return None
        return self.instructions[int(match["index"]) - 1]

    def at_line(self, line: int) -> Instruction | None:
        """Return the instruction that a line of the Dockerfile belongs to."""
        before = [instruction for instruction in self.instructions if instruction.line <= line]
        return before[-1] if before else None

    def _stage(self, words: str) -> _Stage | None:
        """Find a stage by the words before n/m: platform and name, either of which may be missing."""
        names = words.lower().split()
        named = (stage for stage in self._stages if stage.name in names)
        return next(named, self._stages[-1] if len(self._stages) == 1 else None)


def _stages(instructions: tuple[Instruction, ...]) -> Iterator[_Stage]:
    stages: list[_Stage] = []
    for instruction in instructions:
        if instruction.keyword == "FROM":
            match = _FROM.match(instruction.text)
            name = match["name"] if match and match["name"] else f"stage-{len(stages)}"
            stages.append(_Stage(name.lower(), instruction))
        elif instruction.keyword in COUNTED and stages:
            stages[-1].layers.append(instruction)
    yield from stages


def _instructions(dockerfile: str) -> Iterator[Instruction]:
    notes: dict[str, str] = {}
    lines = enumerate(dockerfile.splitlines(), start=1)
    for number, line in lines:
        text = line.strip()
        if note := _NOTE.fullmatch(text):
            notes[note["key"].lower()] = note["text"]
        elif text and not text.startswith("#"):
            yield _instruction(number, text, notes)
            _skip_rest(text, lines)
            notes = {}


def _instruction(number: int, text: str, notes: dict[str, str]) -> Instruction:
    components = tuple(name.strip() for name in notes.get("component", "").split(",") if name.strip())
    return Instruction(number, text.split()[0].upper(), text, notes.get("layer"), components)


def _skip_rest(text: str, lines: Iterator[tuple[int, str]]) -> None:
    """Move past the continued lines of an instruction, then past its here-documents."""
    words = [match[2] for match in _HEREDOC.finditer(text)]
    while text.endswith("\\") or text.startswith("#") or not text:
        text = next(lines, (0, "end"))[1].strip()
        words += [match[2] for match in _HEREDOC.finditer(text)]
    for word in words:
        while next(lines, (0, word))[1].strip() != word:
            pass
