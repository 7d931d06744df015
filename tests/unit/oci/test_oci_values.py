"""Digests, descriptors, manifests, configurations; expected bytes come from the format's pages and from sha256sum."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.descriptor import Descriptor, Platform, descriptor_of
from lj_image.oci.digest import Digest, HashingReader, HashingWriter, digest_of_stream
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import MediaType, compression_of, layer_type
from lj_image.oci.values import Value

# descriptor.md, "Guidance for an Empty Descriptor"; manifest.md, "Example Image Manifest".
EMPTY_JSON = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
HELLO = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"  # echo hello | sha256sum
EXAMPLE = """{
  "schemaVersion": 2,
  "mediaType": "application/vnd.oci.image.manifest.v1+json",
  "config": {
    "mediaType": "application/vnd.oci.image.config.v1+json",
    "digest": "sha256:b5b2b2c507a0944348e0303114d8d93aaaa081732b86451d9bce1f432a537bc7",
    "size": 7023
  },
  "layers": [
    {
      "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
      "digest": "sha256:9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0",
      "size": 32654
    }
  ],
  "annotations": {"com.example.key1": "value1"}
}"""


def test_a_digest_is_that_of_sha256sum() -> None:
    assert str(Digest.of(b"hello\n")) == f"sha256:{HELLO}"
    assert str(descriptor_of(b"{}", MediaType.OCI_EMPTY).digest) == EMPTY_JSON
    assert digest_of_stream(io.BytesIO(b"hello\n")) == (Digest(HELLO), 6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        HELLO,
        f"sha512:{HELLO}",
        f"sha256:{HELLO.upper()}",
        f"sha256:{HELLO[:-1]}",
        f"sha256:{HELLO}0",
        f"sha256:{HELLO}\n",
        "sha256:../../../../etc/passwd",
    ],
)
def test_nothing_else_is_a_digest(text: str) -> None:
    with pytest.raises(ArtifactError, match="no digest"):
        Digest.parse(text)
    if ":" in text:
        with pytest.raises(ArtifactError, match="no SHA-256 digest"):
            Digest(text)


def test_what_passes_is_digested_and_counted() -> None:
    target = io.BytesIO()
    writer, reader = HashingWriter(target), HashingReader(io.BytesIO(b"hello\n"))
    while block := reader.read(4):
        writer.write(memoryview(block))
    assert (writer.digest.hex, writer.size_bytes, target.getvalue()) == (HELLO, 6, b"hello\n")
    assert (reader.digest.hex, reader.size_bytes) == (HELLO, 6)


def test_a_media_type_says_how_a_layer_is_compressed() -> None:
    assert compression_of("application/vnd.oci.image.layer.v1.tar+zstd") == "zstd"
    assert compression_of("application/vnd.docker.image.rootfs.diff.tar.gzip") == "gzip"
    assert compression_of("application/vnd.oci.image.layer.v1.tar") == "none"
    assert compression_of("application/vnd.oci.image.config.v1+json") is None
    assert layer_type("gzip", docker=True) == "application/vnd.docker.image.rootfs.diff.tar.gzip"


def test_the_example_of_the_format_is_read_and_written_sorted_without_spaces() -> None:
    manifest = Manifest.parse(EXAMPLE.encode())
    assert manifest.layers[0].size_bytes == 32654
    assert manifest.config.digest.hex.startswith("b5b2b2c507a09443")
    assert manifest.annotations == {"com.example.key1": "value1"}
    assert manifest.to_bytes().decode() == json.dumps(json.loads(EXAMPLE), sort_keys=True, separators=(",", ":"))
    assert manifest.descriptor().digest == Digest.of(manifest.to_bytes())
    assert Manifest.parse(manifest.to_bytes()) == manifest
    assert len({manifest.config, *manifest.layers}) == 2  # descriptors may be members of sets


def test_an_index_keeps_platforms_and_order() -> None:
    arm = Platform.parse("linux/arm64/v8")
    one = descriptor_of(b"one", MediaType.OCI_MANIFEST, Platform.parse("linux/amd64"))
    two = descriptor_of(b"two", MediaType.OCI_MANIFEST, arm)
    index = Index((two, one))
    assert Index.parse(index.to_bytes()) == index
    assert json.loads(index.to_bytes())["manifests"][0]["platform"] == {
        "os": "linux",
        "architecture": "arm64",
        "variant": "v8",
    }
    assert arm.serves(Platform.parse("linux/arm64"))
    assert not arm.serves(Platform.parse("linux/amd64"))
    assert str(arm) == "linux/arm64/v8"


@pytest.mark.parametrize("text", ["linux", "linux/", "a/b/c/d", ""])
def test_other_words_are_no_platform(text: str) -> None:
    with pytest.raises(UsageError, match="no platform"):
        Platform.parse(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": None}, "config should be an object, and is missing"),
        ({"layers": {}}, "layers should be an array, and is {}"),
        ({"layers": [{"digest": "sha256:x", "size": 1}]}, "layers[0].digest: no digest: 'sha256:x'"),
        (
            {"layers": [{"digest": EMPTY_JSON, "size": -1}]},
            "layers[0].size should be a number of at least 0, and is -1",
        ),
        (
            {"layers": [{"digest": EMPTY_JSON, "size": "2"}]},
            'layers[0].size should be a number of at least 0, and is "2"',
        ),
        ({"annotations": {"a": 1}}, "annotations.a should be a text, and is 1"),
        ({"schemaVersion": 1}, "schemaVersion should be 2, and is 1"),
        ({"mediaType": "application/json"}, "is of the type 'application/json'"),
        ({"manifests": []}, "and yet has 'manifests'"),
    ],
)
def test_a_manifest_that_is_wrong_says_where(change: dict[str, object], words: str) -> None:
    with pytest.raises(ArtifactError) as raised:
        Manifest.parse(json.dumps(json.loads(EXAMPLE) | change).encode(), "it")
    assert words in raised.value.message
    assert raised.value.message.startswith("it")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"[" * 100_000])
def test_what_is_no_json_object_is_told_so(content: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"it (is not JSON|should be an object)"):
        Manifest.parse(content, "it")


def test_a_manifest_is_no_index_and_none_is_larger_than_registries_take() -> None:
    with pytest.raises(ArtifactError, match="of the type"):
        Index.parse(EXAMPLE.encode())
    with pytest.raises(ArtifactError, match="manifests should be an array"):
        Index.parse(b"{}")
    with pytest.raises(ArtifactError, match="more than any registry"):
        Manifest.parse(b" " * (4 * 1024 * 1024 + 1))


BASE = {
    "architecture": "amd64",
    "os": "linux",
    "docker_version": "20.10.24",
    "config": {"Env": ["PATH=/bin", "A=1"], "Cmd": ["/bin/sh"], "Healthcheck": {"Test": ["NONE"]}, "Labels": None},
    "rootfs": {"type": "layers", "diff_ids": [EMPTY_JSON]},
    "history": [{"created_by": "ADD file:x in /", "future": True}, {"created_by": "ENV A=1", "empty_layer": True}],
}


def test_a_configuration_is_extended_and_keeps_what_nobody_here_knows() -> None:
    base = ImageConfig.parse(json.dumps(BASE).encode())
    made = (
        base.with_env({"A": "2", "B": "=3"})
        .with_labels({"x": "y"})
        .with_entrypoint(["/entry"])
        .with_cmd(None)
        .with_workdir("/work")
        .with_created("2025-02-28T00:00:00Z")
        .with_layers([AddedLayer(Digest(HELLO), History("lj-image: a layer"))])
    )
    fields = json.loads(made.to_bytes())
    assert fields["docker_version"] == "20.10.24"
    assert fields["config"] == {
        "Env": ["PATH=/bin", "A=2", "B==3"],
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {"x": "y"},
        "Entrypoint": ["/entry"],
        "WorkingDir": "/work",
    }
    assert fields["history"] == [*BASE["history"], {"created_by": "lj-image: a layer"}]
    assert fields["rootfs"]["diff_ids"] == [EMPTY_JSON, f"sha256:{HELLO}"]
    assert (made.env["B"], made.cmd, made.entrypoint, made.workdir) == ("=3", None, ("/entry",), "/work")
    assert base.to_bytes() == ImageConfig(BASE).to_bytes(), "the base's own configuration stays as it was"
    assert made.history[1].empty_layer


def test_the_same_configuration_has_the_same_bytes_whatever_the_order_of_its_keys() -> None:
    turned = ImageConfig(dict(reversed(BASE.items())))
    assert turned.to_bytes() == ImageConfig(BASE).to_bytes()
    assert turned.digest == Digest.of(turned.to_bytes())


def test_an_empty_configuration_is_one_without_layers() -> None:
    empty = ImageConfig.empty(Platform("linux", "arm64", "v8"))
    assert (empty.diff_ids, empty.history, empty.cmd, str(empty.platform)) == ((), (), None, "linux/arm64/v8")
    assert (empty.created, empty.user, dict(empty.labels)) == (None, "", {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architecture": None}, "architecture should be a text, and is missing"),
        ({"config": []}, "config should be an object"),
        ({"config": {"Env": "A=b"}}, "config.Env should be an array"),
        ({"rootfs": None}, "rootfs should be an object"),
        ({"rootfs": {"diff_ids": ["x"]}}, "rootfs.diff_ids[0]: no digest: 'x'"),
        ({"history": [{"empty_layer": "yes"}]}, "history[0].empty_layer should be true or false"),
    ],
)
def test_a_configuration_that_is_wrong_says_where(change: dict[str, object], words: str) -> None:
    with pytest.raises(ArtifactError) as raised:
        ImageConfig.parse(json.dumps(BASE | change).encode())
    assert words in raised.value.message


def test_optional_parts_of_a_descriptor_are_kept() -> None:
    whole = replace(
        descriptor_of(b"x", "a/b"),
        urls=("https://example.org/x",),
        artifact_type="c/d",
        annotations={"k": "v"},
        platform=Platform("windows", "amd64", os_version="10.0", os_features=("win32k",)),
    )
    assert Descriptor.from_json(Value(whole.to_json(), "it")) == whole
