"""BuildKit's protobuf messages, built at import from a table.

Generated modules work with few protobuf runtimes: a module made by protoc 7.35 refuses protobuf 6. The table
below gives the same bytes on every runtime from 4.22 on, needs no compiler and is all that we speak of the
protocol. Messages live in a descriptor pool of their own; names are not on the wire.

Sources: moby/buildkit api/services/control/control.proto, session/{auth,filesync,secrets}/*.proto,
tonistiigi/fsutil types/{stat,wire}.proto, grpc/health/v1/health.proto.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "lj_image.buildkit"

# `name:type=number`; `*` repeats, `{}` maps strings to the type. An upper-case type is a message of this table.
TABLE: Final = {
    "Timestamp": "seconds:int64=1 nanos:int32=2",
    # fsutil
    "Stat": "path:string=1 mode:uint32=2 uid:uint32=3 gid:uint32=4 size:int64=5 mod_time:int64=6 "
    "linkname:string=7 devmajor:int64=8 devminor:int64=9 xattrs:{}bytes=10",
    "Packet": "type:int32=1 stat:Stat=2 id:uint32=3 data:bytes=4",
    # session services
    "CredentialsRequest": "host:string=1",
    "CredentialsResponse": "username:string=1 secret:string=2",
    "GetSecretRequest": "id:string=1 annotations:{}string=2",
    "GetSecretResponse": "data:bytes=1",
    "HealthCheckResponse": "status:int32=1",
    # progress
    "Vertex": "digest:string=1 inputs:*string=2 name:string=3 cached:bool=4 started:Timestamp=5 "
    "completed:Timestamp=6 error:string=7",
    "VertexStatus": "id:string=1 vertex:string=2 name:string=3 current:int64=4 total:int64=5 "
    "timestamp:Timestamp=6 started:Timestamp=7 completed:Timestamp=8",
    "VertexLog": "vertex:string=1 timestamp:Timestamp=2 stream:int64=3 msg:bytes=4",
    "VertexWarning": "vertex:string=1 level:int64=2 short:bytes=3 detail:*bytes=4 url:string=5",
    "StatusResponse": "vertexes:*Vertex=1 statuses:*VertexStatus=2 logs:*VertexLog=3 warnings:*VertexWarning=4",
}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
}


def _add_field(message: Any, name: str, kind: str, number: int) -> None:
    repeated = kind.startswith(("*", "{}"))
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind.startswith("{}"):
        kind = _add_map_entry(message, name, kind.removeprefix("{}"))
    kind = kind.removeprefix("*")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"


def _add_map_entry(message: Any, name: str, kind: str) -> str:
    """Add the nested message that a map field is on the wire, and return its name within the package."""
    entry = message.nested_type.add(name=f"{name.title()}Entry")
    entry.options.map_entry = True
    _add_field(entry, "key", "string", 1)
    _add_field(entry, "value", kind, 2)
    return f"{message.name}.{entry.name}"


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="lj_image/buildkit.proto", package=PACKAGE, syntax="proto3")
    for name, fields in TABLE.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            label, kind, number = re.split("[:=]", field)
            _add_field(message, label, kind, int(number))
    return file


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    by_name = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(by_name(f"{PACKAGE}.{name}")) for name in TABLE}


_CLASSES: Final = _classes()
Packet: Final = _CLASSES["Packet"]
Stat: Final = _CLASSES["Stat"]
CredentialsRequest: Final = _CLASSES["CredentialsRequest"]
CredentialsResponse: Final = _CLASSES["CredentialsResponse"]
GetSecretRequest: Final = _CLASSES["GetSecretRequest"]
GetSecretResponse: Final = _CLASSES["GetSecretResponse"]
HealthCheckResponse: Final = _CLASSES["HealthCheckResponse"]
StatusResponse: Final = _CLASSES["StatusResponse"]
