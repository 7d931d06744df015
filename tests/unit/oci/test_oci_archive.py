"""Images as one tar, read back by tarfile and by ourselves; and whether an image is whole."""

from __future__ import annotations

import io
import json
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.archive import Form, archive, index_archive
from lj_image.oci.copying import copy_into
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, SourceLayer, image_of, with_manifest
from lj_image.oci.validate import faults, validate
from samples.images import AMD64, ARM64, LAYERS, gzipped, gzipped_in_parts, image, sha256, tar_of

NAME = Reference.parse("team/stack:25.02")


def files_of(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        return {item.name: tar.extractfile(item).read() for item in tar if item.isreg()}


def written(path: Path, image: SourceImage, form: Form = "both", name: Reference = NAME) -> Path:
    path.write_bytes(b"".join(archive(image, (name,), form)))
    return path


def test_one_tar_is_an_oci_archive_and_what_docker_loads(tmp_path: Path) -> None:
    wanted = image(tmp_path)
    files = files_of(b"".join(archive(wanted, (NAME, Reference.parse("localhost:5000/stack")))))
    config, blobs = f"blobs/sha256/{sha256(wanted.config)}", [f"blobs/sha256/{sha256(gzipped(it))}" for it in LAYERS]
    assert json.loads(files["manifest.json"]) == [
        {"Config": config, "RepoTags": ["team/stack:25.02", "localhost:5000/stack:latest"], "Layers": blobs}
    ]
    assert [item["annotations"] for item in json.loads(files["index.json"])["manifests"]] == [
        {"io.containerd.image.name": "docker.io/team/stack:25.02", "org.opencontainers.image.ref.name": "25.02"},
        {"io.containerd.image.name": "localhost:5000/stack:latest", "org.opencontainers.image.ref.name": "latest"},
    ]
    assert files[config] == wanted.config
    assert [files[blob] for blob in blobs] == [gzipped(layer) for layer in LAYERS]
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{sha256(content)}"


def test_each_form_alone_has_only_its_own_files(tmp_path: Path) -> None:
    wanted = image(tmp_path)
    oci, docker = (set(files_of(b"".join(archive(wanted, (NAME,), form)))) for form in ("oci", "docker"))
    assert docker - oci == {"manifest.json"}
    assert oci - docker == {"oci-layout", "index.json", f"blobs/sha256/{sha256(wanted.manifest or b'')}"}


def test_the_same_image_gives_the_same_bytes_and_nothing_of_the_machine(tmp_path: Path) -> None:
    one, other = (b"".join(archive(image(tmp_path / folder), (NAME,))) for folder in ("a", "b"))
    assert one == other
    with tarfile.open(fileobj=io.BytesIO(one), mode="r:") as tar:
        assert {(item.uid, item.gid, item.uname, item.gname, item.mtime) for item in tar} == {(0, 0, "", "", 0)}
    assert one.endswith(bytes(1024))
    assert len(one) % 512 == 0


def test_a_layer_that_occurs_twice_is_written_once(tmp_path: Path) -> None:
    content = b"".join(archive(image(tmp_path, (LAYERS[1], LAYERS[1]))))
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        names = tar.getnames()
    assert len(names) == len(set(names))
    assert names.count(f"blobs/sha256/{sha256(gzipped(LAYERS[1]))}") == 1


def test_layers_that_an_engine_has_are_left_out(tmp_path: Path) -> None:
    files = files_of(b"".join(archive(image(tmp_path), (NAME,), left_out={0})))
    assert f"blobs/sha256/{sha256(gzipped(LAYERS[0]))}" not in files
    assert len(json.loads(files["manifest.json"])[0]["Layers"]) == 2


@pytest.mark.parametrize("form", ["oci", "docker", "both"])
@pytest.mark.parametrize(
    ("compress", "media_type"),
    [
        (bytes, MediaType.OCI_LAYER),
        (gzipped_in_parts, MediaType.OCI_LAYER_GZIP),
        (zstandard.compress, MediaType.OCI_LAYER_ZSTD),
    ],
)
def test_what_is_written_is_read_back_whole(
    form: Form, compress: Callable[[bytes], bytes], media_type: str, tmp_path: Path
) -> None:
    wanted = image(tmp_path, compress=compress, media_type=media_type)
    found = open_image(written(tmp_path / "x.tar", wanted, form))
    validate(found)
    assert (found.config, found.image_id) == (wanted.config, Digest(sha256(wanted.config)))
    assert [layer.diff_id for layer in found.layers] == [Digest(sha256(layer)) for layer in LAYERS]
    # A manifest of ours is the same, whether it was read or made anew from what docker keeps.
    assert with_manifest(found).manifest == wanted.manifest


def test_an_index_of_platforms_is_one_archive(tmp_path: Path) -> None:
    every = {str(of): image(tmp_path, (LAYERS[1],), platform=of) for of in (AMD64, ARM64)}
    path = tmp_path / "both.tar"
    path.write_bytes(b"".join(index_archive(every.values(), (NAME,))))
    assert open_image(path).manifest == every["linux/amd64"].manifest
    for name, wanted in every.items():
        found = open_image(path, Platform.parse(name), "25.02")
        validate(found)
        assert found.manifest == wanted.manifest
    with pytest.raises(UsageError, match=r"no images for linux/s390x; it holds linux/amd64, linux/arm64"):
        open_image(path, Platform.parse("linux/s390x"))


def test_one_of_several_images_is_chosen_by_its_name(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path / "layout")
    for name in ("one", "two"):
        copy_into(layout, image(tmp_path / "blobs", cmd=(name,)), name)
    assert open_image(layout.folder, reference="two").settings.cmd == ("two",)
    with pytest.raises(UsageError, match=r"holds 2 images .*it holds one \(linux/amd64\), two \(linux/amd64\)"):
        open_image(layout.folder)
    with pytest.raises(UsageError, match="holds no images three"):
        open_image(layout.folder, reference="three")


def test_the_platform_of_an_entry_without_one_is_what_its_configuration_says(tmp_path: Path) -> None:
    wanted = image(tmp_path / "blobs", platform=ARM64)
    layout = Layout.create(tmp_path / "layout")
    layout.set_reference("x", replace(copy_into(layout, wanted), platform=None))
    assert open_image(layout.folder, ARM64).manifest == wanted.manifest
    with pytest.raises(UsageError, match="no images for linux/amd64; it holds x"):
        open_image(layout.folder, AMD64)


def test_a_layer_that_old_engines_save_as_a_link_is_found(tmp_path: Path) -> None:
    config = ImageConfig.empty(AMD64).with_layers(
        [AddedLayer(Digest(sha256(LAYERS[0])), History(step)) for step in "ab"]
    )
    manifest = [{"Config": "c.json", "RepoTags": None, "Layers": ["1/layer.tar", "2/layer.tar"]}]
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in {
            "1/layer.tar": LAYERS[0],
            "c.json": config.to_bytes(),
            "manifest.json": json.dumps(manifest).encode(),
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("2/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, "../1/layer.tar"
        tar.addfile(link)
    found = open_image(path)
    validate(found)
    assert [layer.size_bytes for layer in found.layers] == [len(LAYERS[0])] * 2


def test_a_name_that_leads_out_of_a_folder_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "x").mkdir()
    for name in ("../secret", str(tmp_path / "secret")):
        (tmp_path / "x" / "manifest.json").write_text(json.dumps([{"Config": name, "Layers": []}]))
        with pytest.raises(ArtifactError, match=r"secret is missing"):
            open_image(tmp_path / "x")


def test_as_many_layers_as_the_configuration_names_have_to_be_there(tmp_path: Path) -> None:
    config = ImageConfig.empty(AMD64).to_bytes()
    manifest = json.dumps([{"Config": "c", "Layers": ["l"]}]).encode()
    (tmp_path / "x.tar").write_bytes(tar_of({"c": config, "l": b"", "manifest.json": manifest}))
    with pytest.raises(ArtifactError, match="has 1 layers, and its configuration names 0"):
        open_image(tmp_path / "x.tar")


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        open_image(tmp_path / "absent.tar")


def test_a_layer_with_other_bytes_stops_the_archive(tmp_path: Path) -> None:
    wanted = image(tmp_path)
    for content in (gzipped(LAYERS[1])[:-1] + b"\1", b"", gzipped(LAYERS[0]) + b"x"):
        spoilt = replace(wanted.layers[0], open=lambda content=content: io.BytesIO(content))
        with pytest.raises(ArtifactError, match=f"the blob {sha256_of_first()}"):
            list(archive(replace(wanted, layers=(spoilt, *wanted.layers[1:])), (NAME,)))


def sha256_of_first() -> str:
    return f"sha256:{sha256(gzipped(LAYERS[0]))}"


def test_memory_does_not_grow_with_a_layer() -> None:
    size = 100 * 1024 * 1024

    class Zeros(io.RawIOBase):
        left = size

        def read(self, size: int = -1, /) -> bytes:
            block = bytes(min(size, self.left))
            self.left -= len(block)
            return block

    # head -c 104857600 /dev/zero | sha256sum
    digest = Digest("20492a4d0d84f8beb1767f6616229f85d44c2827b64bdbfb260ee12fa1109e0e")
    layer = SourceLayer(digest, "none", size, Zeros, Descriptor(MediaType.OCI_LAYER, digest, size))
    wanted = image_of("large", ImageConfig.empty(AMD64).with_layers([AddedLayer(digest, History("zeros"))]), [layer])
    tracemalloc.start()
    assert sum(map(len, archive(wanted))) > size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1024 * 1024


def test_a_whole_image_has_no_faults(tmp_path: Path) -> None:
    assert list(faults(image(tmp_path))) == []


def test_every_fault_of_an_image_is_told(tmp_path: Path) -> None:
    wanted = image(tmp_path)
    config = wanted.settings.with_layers([AddedLayer(Digest(sha256(b"")), History("one too many"))])
    lying = replace(wanted.layers[0], open=lambda: io.BytesIO(gzipped(LAYERS[1])))
    cut = replace(wanted.layers[1], open=lambda: io.BytesIO(gzipped(LAYERS[1])[:-9]))
    spoilt = replace(wanted, config=config.to_bytes(), layers=(lying, cut))
    with pytest.raises(ArtifactError) as raised:
        validate(spoilt)
    for words in (
        "the configuration has the digest",
        "the configuration names 3 layers, and 2 are there",
        "the history has 3 steps that made a layer, for 2 layers",
        f"layers[0]: has the diff id sha256:{sha256(LAYERS[1])} instead of sha256:{sha256(LAYERS[0])}",
        f"layers[0]: the blob has the digest sha256:{sha256(gzipped(LAYERS[1]))}",
        "layers[1]: cannot be read: the compressed bytes end early",
    ):
        assert words in raised.value.message


def test_types_that_do_not_fit_are_faults(tmp_path: Path) -> None:
    wrong = image(tmp_path, compress=gzipped, media_type=MediaType.OCI_LAYER_ZSTD)
    assert list(faults(wrong)) == [
        f"layers[{at}]: is of the type application/vnd.oci.image.layer.v1.tar+zstd, and its compression is gzip"
        for at in (0, 1)
    ]
    mixed = image(tmp_path, media_type=MediaType.DOCKER_LAYER_GZIP)
    assert any("names blobs of the other kind" in fault for fault in faults(mixed))
    manifest = Manifest.parse(mixed.manifest or b"")
    other = replace(manifest, config=replace(manifest.config, media_type="application/x")).to_bytes()
    assert any("none of an image's" in fault for fault in faults(replace(mixed, manifest=other, descriptor=None)))
    assert list(faults(replace(mixed, config=b"{}"))) == [
        "the configuration of a test's image: architecture should be a text, and is missing"
    ]
