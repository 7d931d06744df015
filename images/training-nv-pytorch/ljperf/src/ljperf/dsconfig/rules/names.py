"""Keys that nobody reads, keys of other versions, and values of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.dsconfig.keys import NEWEST, TABLES_END, Key, Section, Version, closest, parsed, sections
from ljperf.dsconfig.reading import Reading
from ljperf.dsconfig.rules.batch import NAMES as BATCH
from ljperf.dsconfig.values import number_of, refusal


def names(reading: Reading) -> Iterator[Finding]:
    """Every key of every section that is described."""
    for name, section in sections().items():
        path = tuple(name.split("/")) if name else ()
        held = _held(reading.config, path)
        if isinstance(held, Mapping):
            for key, value in held.items():
                yield from _entry(section, (*path, key), value, reading)


def _held(config: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        config = config.get(part) if isinstance(config, Mapping) else None
    return config


def _entry(section: Section, path: tuple[str, ...], value: Any, reading: Reading) -> Iterator[Finding]:
    key = section.key(path[-1])
    if key is None:
        yield _unknown(section, path, reading)
    elif not key.known(reading.version):
        yield _other_version(section, key, path, reading)
    elif section.refuses(reading.version) and value != "auto":
        reason = refusal(key, value)
        if reason:
            yield error(pointer_of(*path), f"{path[-1]} {reason}; this is {_shown(value)}", _repair(key, value))
    elif section.pointer == "" and key.type == "mapping" and not isinstance(value, Mapping):
        yield error(pointer_of(*path), f"{path[-1]} must be a section {{ … }}, not {_shown(value)}")


def _unknown(section: Section, path: tuple[str, ...], reading: Reading) -> Finding:
    near = closest(path[-1], section.names(reading.version))
    elsewhere = _elsewhere(section, path[-1], reading)
    hint = f"did you mean {near}?" if near else elsewhere
    if TABLES_END < reading.version != NEWEST and not near:
        message = f"{section.pointer or 'the config'} had no key {path[-1]} up to DeepSpeed {_dotted(TABLES_END)}"
        return warning(pointer_of(*path), message, hint)
    if section.refuses(reading.version):
        return error(pointer_of(*path), f"{section.pointer} has no key {path[-1]}: DeepSpeed refuses to start", hint)
    where = section.pointer or "the config"
    return warning(pointer_of(*path), f"{where} has no key {path[-1]}: nobody reads it", hint)


def _elsewhere(section: Section, name: str, reading: Reading) -> str | None:
    """The section that has a key of that name: stage3_… at the top, for example."""
    for other in sections().values():
        key = other.key(name)
        if other is not section and key and key.known(reading.version) and not name.startswith("enabled"):
            return f"it belongs into {other.pointer or 'the top level'}"
    return None


def _other_version(section: Section, key: Key, path: tuple[str, ...], reading: Reading) -> Finding:
    newer = key.since and parsed(key.since) > reading.version
    when = f"came with DeepSpeed {key.since}" if newer else f"went after DeepSpeed {key.last}"
    message = f"{path[-1]} {when}, and this is {_dotted(reading.version)}"
    if section.refuses(reading.version):
        return error(pointer_of(*path), f"{message}: it refuses to start", "remove it")
    return warning(pointer_of(*path), f"{message}: nobody reads it", "remove it")


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _shown(value: Any) -> str:
    import json

    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


def _repair(key: Key, value: Any) -> str | None:
    """What to write instead, where that is plain."""
    number = number_of(value)
    if key.type == "int" and isinstance(value, float) and number is not None:
        return f'write {int(value)}, or "auto" under Transformers' if _has_auto(key) else f"write {int(value)}"
    if key.type == "int" and isinstance(value, str):
        return _from_text(value)
    return None


def _from_text(value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return f"write the number {int(number)}, without quotes" if number.is_integer() else None


def _has_auto(key: Key) -> bool:
    return key.name in ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")


def scalars(reading: Reading) -> Iterator[Finding]:
    """Top-level numbers and truth values: DeepSpeed computes with them unchecked, so a text fails far from here."""
    section = sections()[""]
    for name, value in reading.config.items():
        key = section.key(name)
        if key is None or name in BATCH or not isinstance(value, str) or value == "auto":
            continue  # the batch sizes have a rule of their own, and so has "auto"
        if key.type in ("int", "float", "bool"):
            kind = "true or false" if key.type == "bool" else "a number"
            yield error(pointer_of(name), f"{name} is a text, and must be {kind}", "remove the quotes")
