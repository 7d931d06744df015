"""An image's configuration: how it is started, what its layers unpack to, and how it came about.

Format: https://github.com/opencontainers/image-spec/blob/main/config.md
A configuration never changes; `with_…` returns another. Fields that nobody here knows are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from lj_image.oci.descriptor import Platform
from lj_image.oci.digest import Digest
from lj_image.oci.values import Value, canonical


@dataclass(frozen=True, slots=True)
class History:
    """One step that made the image."""

    created_by: str
    created: str | None = None
    """RFC 3339, such as 2025-02-28T00:00:00Z."""
    author: str | None = None
    comment: str | None = None
    empty_layer: bool = False
    """It changed the configuration alone, so no layer is its."""

    @classmethod
    def from_json(cls, value: Value) -> Self:
        """Read a step; raises ArtifactError."""
        return cls(
            value["created_by"].text(""),
            value["created"].text(None),
            value["author"].text(None),
            value["comment"].text(None),
            value["empty_layer"].flag(),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object of a configuration; what is empty is left out."""
        every = {
            "created_by": self.created_by,
            "created": self.created,
            "author": self.author,
            "comment": self.comment,
            "empty_layer": self.empty_layer,
        }
        return {key: value for key, value in every.items() if value}


@dataclass(frozen=True, slots=True)
class AddedLayer:
    """A layer to be put on top, and the step that made it."""

    diff_id: Digest
    """Of its tar, uncompressed."""
    history: History


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """A configuration over its JSON; the typed view is checked when it is made."""

    fields: Mapping[str, Any]
    document: str = "the configuration"
    """What it is called in messages."""

    def __post_init__(self) -> None:
        value = self._value
        for key in ("architecture", "os"):
            value[key].text()
        for key in ("variant", "created"):
            value[key].text(None)
        if "config" in value:
            value["config"].object()
        _ = self.diff_ids, self.history, self.env, self.labels, self.entrypoint, self.cmd, self.workdir, self.user

    @classmethod
    def parse(cls, content: bytes, document: str = "the configuration") -> Self:
        """Read a configuration; raises ArtifactError that names what is wrong."""
        return cls(Value.parse(content, document).object(), document)

    @classmethod
    def empty(cls, platform: Platform) -> Self:
        """Return the configuration of an image without layers."""
        named = {"os": platform.os, "architecture": platform.architecture}
        variant = {"variant": platform.variant} if platform.variant else {}
        return cls({**named, **variant, "config": {}, "rootfs": {"type": "layers", "diff_ids": []}, "history": []})

    @property
    def _value(self) -> Value:
        return Value(self.fields, self.document)

    @property
    def _run(self) -> Value:
        found = self._value["config"]
        return found if found.found is not None else Value({}, self.document, "config")

    @property
    def architecture(self) -> str:
        """Such as amd64."""
        return self._value["architecture"].text()

    @property
    def os(self) -> str:
        """Such as linux."""
        return self._value["os"].text()

    @property
    def variant(self) -> str | None:
        """Such as v8; None where there is none."""
        return self._value["variant"].text(None) or None

    @property
    def platform(self) -> Platform:
        """What the image runs on."""
        return Platform(self.os, self.architecture, self.variant)

    @property
    def created(self) -> str | None:
        """RFC 3339."""
        return self._value["created"].text(None)

    @property
    def env(self) -> Mapping[str, str]:
        """Variables; of two with one name the last, as a shell would have it."""
        pairs = (item.partition("=") for item in self._run["Env"].texts())
        return {name: value for name, _, value in pairs}

    @property
    def entrypoint(self) -> tuple[str, ...] | None:
        """The command's first words; None where there is none."""
        return self._run["Entrypoint"].texts() if "Entrypoint" in self._run else None

    @property
    def cmd(self) -> tuple[str, ...] | None:
        """The words after the entrypoint, unless others are given; None where there are none."""
        return self._run["Cmd"].texts() if "Cmd" in self._run else None

    @property
    def workdir(self) -> str:
        """The folder that a container starts in; empty for the root."""
        return self._run["WorkingDir"].text("")

    @property
    def user(self) -> str:
        """Who a container runs as; empty for root."""
        return self._run["User"].text("")

    @property
    def labels(self) -> Mapping[str, str]:
        """What the image says of itself."""
        return self._run["Labels"].text_map()

    @property
    def diff_ids(self) -> tuple[Digest, ...]:
        """The digest of each layer's uncompressed tar, the lowest first."""
        rootfs = self._value["rootfs"]
        if rootfs.found is None:
            rootfs.fail("an object")
        return tuple(item.read(Digest.parse) for item in rootfs["diff_ids"].items())

    @property
    def history(self) -> tuple[History, ...]:
        """The steps, the first one first; it may be missing even where there are layers."""
        return tuple(map(History.from_json, self._value["history"].items()))

    def with_env(self, variables: Mapping[str, str]) -> Self:
        """Set variables; those that were there keep their place."""
        return self._running(Env=[f"{name}={value}" for name, value in ({**self.env, **variables}).items()])

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        """Set labels; the others stay."""
        return self._running(Labels={**self.labels, **labels})

    def with_entrypoint(self, words: Iterable[str] | None) -> Self:
        """Set the entrypoint; None takes it away."""
        return self._running(Entrypoint=None if words is None else list(words))

    def with_cmd(self, words: Iterable[str] | None) -> Self:
        """Set the command; None takes it away."""
        return self._running(Cmd=None if words is None else list(words))

    def with_workdir(self, folder: str) -> Self:
        """Set the folder that a container starts in."""
        return self._running(WorkingDir=folder or None)

    def with_created(self, created: str) -> Self:
        """Set when the image was made, RFC 3339."""
        return self._changed(created=created)

    def with_steps(self, steps: Iterable[History]) -> Self:
        """Add steps that made no layer to the history."""
        return self._changed(
            history=[*(item.found for item in self._value["history"].items()), *(step.to_json() for step in steps)]
        )

    def with_layers(self, layers: Iterable[AddedLayer]) -> Self:
        """Put layers on top, each with the step that made it."""
        added = tuple(layers)
        rootfs = dict(self._value["rootfs"].object())
        rootfs["diff_ids"] = [*map(str, self.diff_ids), *(str(layer.diff_id) for layer in added)]
        return self._changed(rootfs=rootfs).with_steps(layer.history for layer in added)

    def _running(self, **members: Any) -> Self:
        merged = {**self._run.object(), **members}
        return self._changed(
            config={key: value for key, value in merged.items() if key not in members or value is not None}
        )

    def _changed(self, **members: Any) -> Self:
        return replace(self, fields={**self.fields, **members})

    def to_bytes(self) -> bytes:
        """Return canonical JSON."""
        return canonical(self.fields)

    @property
    def digest(self) -> Digest:
        """Of the canonical bytes: the image id that engines show."""
        return Digest.of(self.to_bytes())
