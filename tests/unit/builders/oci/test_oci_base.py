"""Bases of each form, made here: a root file system, an OCI layout, what engines save, and one in a registry."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

from lj_image.builders.bootstrap import PATH
from lj_image.builders.oci import base as module
from lj_image.builders.oci.base import base_of
from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.oci.base_links import USR_MERGE, base_tree
from lj_image.builders.oci.entries import Folder
from lj_image.builders.oci.fresh_gzip import MEMBER_BYTES, gzip_members
from lj_image.catalog.release import Base, BaseFacts, BootstrapRecipe, Platform
from lj_image.config import Config, ConfigFile
from lj_image.errors import ArtifactError, BuildError, LjImageError, UsageError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.descriptor import Platform as OciPlatform
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import SourceImage, image_in

FACTS = BaseFacts("base", "3.11", "2.36", "/usr/local/lib/python3.11/dist-packages", {}, {}, True, "bases/base.yaml")
RECIPE = BootstrapRecipe(
    "base-os", "bookworm", "amd64", ("python3",), 1735689600, (("PIP_BREAK_SYSTEM_PACKAGES", "1"),)
)
GZIP = partial(gzip.compress, mtime=0)
OURS = Base(None, RECIPE, FACTS)
THEIRS = Base("vendor.example/pytorch:25.02", None, replace(FACTS, digest=f"sha256:{'1' * 64}"))
AMD64, ARM64 = Platform(), Platform("linux", "arm64")


def tar_of(*members: tuple[str, Any], **fields: Any) -> bytes:
    """A number is a folder's mode, a text a link's target, bytes a file's content."""
    spool = io.BytesIO()
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, what in members:
            member = tarfile.TarInfo(name)
            for key, value in fields.items():
                setattr(member, key, value)
            if isinstance(what, bytes):
                member.size = len(what)
                tar.addfile(member, io.BytesIO(what))
            elif isinstance(what, str):
                member.type, member.linkname = tarfile.SYMTYPE, what
                tar.addfile(member)
            else:
                member.type, member.mode = tarfile.DIRTYPE, what
                tar.addfile(member)
    return spool.getvalue()


ROOTFS = tar_of(
    ("bin", "usr/bin"), ("etc/", 0o755), ("etc/debian_version", b"12\n"), ("lib", "usr/lib"), ("root/", 0o700),
    ("run/", 0o755), ("usr/", 0o755), ("usr/bin/", 0o755), ("usr/lib/", 0o755), ("var/", 0o755), ("var/run", "/run"),
)  # fmt: skip
DIFF_ID = f"sha256:{hashlib.sha256(ROOTFS).hexdigest()}"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(None, ConfigFile(mirrors={"vendor.example": "mirror.example/vendor"}), tmp_path / "cache")


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "store")


Found = Callable[..., OciBase]


@pytest.fixture
def found(config: Config, blobs: BlobStore) -> Found:
    def found(
        override: Path | str | None = None, base: Base = THEIRS, platform: Platform = AMD64, **more: Any
    ) -> OciBase:
        named = None if override is None else str(override)
        return base_of(base, platform, config=config, blobs=blobs, override=named, say=more.pop("say", print), **more)

    return found


@pytest.fixture
def rootfs(config: Config) -> Path:
    """The recipe's own, as if it had been made."""
    path = config.cache_dir / "bases" / f"{RECIPE.digest()}.tar"
    path.parent.mkdir(parents=True)
    path.write_bytes(ROOTFS)
    return path


def unpacked(base: OciBase, blobs: BlobStore) -> bytes:
    [layer] = base.layers
    return gzip.decompress(blobs.path(layer.descriptor.digest).read_bytes())


def test_a_recipe_is_one_layer_with_the_configuration_that_engines_load(
    found: Found, rootfs: Path, blobs: BlobStore
) -> None:
    base = found(base=OURS)
    assert base.name == RECIPE.reference()
    assert base.config.env == {"PATH": PATH, "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    assert [str(layer.diff_id) for layer in base.layers] == [DIFF_ID]
    assert list(map(str, base.config.diff_ids)) == [DIFF_ID]
    assert unpacked(base, blobs) == ROOTFS
    assert base.layers[0].descriptor.media_type == "application/vnd.oci.image.layer.v1.tar+gzip"
    assert base.tree.folder_links == {"bin": "usr/bin", "lib": "usr/lib", "var/run": "run"}
    assert base.tree.folders == {"root": Folder("root", 0o700)}
    engines = json.dumps(base.config.fields, sort_keys=True, separators=(",", ":")).encode()
    assert base.digest == f"sha256:{hashlib.sha256(engines).hexdigest()}"


def test_what_was_compressed_and_read_before_is_only_remembered(
    found: Found, rootfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = found(base=OURS)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("lj_image.builders.oci.base_image.base_tree", never)
    monkeypatch.setattr("lj_image.builders.oci.base_rootfs.gzip_members", never)
    assert found(base=OURS, say=never) == first


@pytest.mark.parametrize("damage", ["", "{}", '{"digest": 5}', "[1, 2]"])
def test_a_damaged_memory_is_as_good_as_none(damage: str, found: Found, rootfs: Path) -> None:
    first = found(base=OURS)
    for note in rootfs.parent.glob("*.json"):
        note.write_text(damage)
    assert found(base=OURS) == first


def test_a_layer_that_was_cleaned_away_is_made_again(found: Found, rootfs: Path, blobs: BlobStore) -> None:
    first = found(base=OURS)
    blobs.path(first.layers[0].descriptor.digest).unlink()
    assert found(base=OURS) == first
    assert unpacked(first, blobs) == ROOTFS


def test_a_layer_is_copied_to_where_it_is_wanted(found: Found, rootfs: Path, tmp_path: Path) -> None:
    [layer], target = found(base=OURS).layers, BlobStore(tmp_path / "output")
    for _ in range(2):
        layer.copy(target)
    assert gzip.decompress(target.read(layer.descriptor.digest)) == ROOTFS


@pytest.mark.parametrize("size_bytes", [0, 1, MEMBER_BYTES - 1, MEMBER_BYTES, MEMBER_BYTES + 1, 3 * MEMBER_BYTES])
def test_gzip_is_the_same_with_any_number_of_threads(size_bytes: int) -> None:
    plain = hashlib.shake_128(b"seed").digest(size_bytes // 2) + bytes(size_bytes - size_bytes // 2)
    made = {b"".join(gzip_members(io.BytesIO(plain), workers=workers)) for workers in (1, 2, 5)}
    assert [gzip.decompress(content) for content in made] == [plain]


def test_gzip_does_not_depend_on_how_much_a_read_gives() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 70_001))

    plain = bytes(range(256)) * 10_000
    assert b"".join(gzip_members(Slow(plain))) == b"".join(gzip_members(io.BytesIO(plain)))


def test_a_root_file_system_may_be_given_by_its_path(found: Found, tmp_path: Path, blobs: BlobStore) -> None:
    path = tmp_path / "my root.tar"
    path.write_bytes(ROOTFS)
    base = found(path)
    assert (base.name, unpacked(base, blobs)) == (str(path), ROOTFS)
    assert base.config.platform == OciPlatform("linux", "amd64")
    assert base.config.env == {"PATH": PATH}
    assert [item.name for item in tmp_path.iterdir() if "diff-id" in item.name] == []


def test_a_recipes_own_root_file_system_from_elsewhere_is_the_same_base(
    found: Found, rootfs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "carried.tar"
    path.write_bytes(ROOTFS)
    carried, made = found(path, base=OURS), found(base=OURS)
    assert (carried.digest, carried.layers, carried.tree) == (made.digest, made.layers, made.tree)


def config_of(*diff_ids: str, architecture: str = "amd64") -> ImageConfig:
    rootfs = {"type": "layers", "diff_ids": list(diff_ids)}
    return ImageConfig({"os": "linux", "architecture": architecture, "config": {"Env": ["A=1"]}, "rootfs": rootfs})


def written(
    layout: Layout, tars: list[bytes], compress: Callable[[bytes], bytes], kind: str, **more: str
) -> Descriptor:
    diff_ids = [str(Digest.of(tar)) for tar in tars]
    content = config_of(*diff_ids, **more).to_bytes()
    blobs = [compress(tar) for tar in tars]
    layers = tuple(Descriptor(kind, layout.blobs.put(blob), len(blob)) for blob in blobs)
    config = Descriptor(MediaType.OCI_CONFIG, layout.blobs.put(content), len(content))
    manifest = Manifest(config, layers)
    layout.blobs.put(manifest.to_bytes())
    return manifest.descriptor(OciPlatform("linux", more.get("architecture", "amd64")))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.create(tmp_path / "layout")


UPPER = tar_of(("etc/.wh.debian_version", b""), ("opt/", 0o750), uid=1000, gid=100)


@pytest.mark.parametrize(
    ("compress", "kind"),
    [
        (GZIP, MediaType.OCI_LAYER_GZIP),
        (zstandard.ZstdCompressor().compress, MediaType.OCI_LAYER_ZSTD),
        (bytes, MediaType.OCI_LAYER),
    ],
)
@pytest.mark.parametrize("is_tar", [False, True])
def test_an_oci_layout_keeps_its_layers_as_its_manifest_says(
    compress: Callable[[bytes], bytes], kind: str, is_tar: bool, found: Found, layout: Layout, tmp_path: Path
) -> None:
    manifest = written(layout, [ROOTFS, UPPER], compress, kind)
    layout.set_reference("base:1", manifest)
    path = layout.folder
    if is_tar:
        path = tmp_path / "layout.tar"
        with tarfile.open(path, "w") as tar:
            tar.add(layout.folder, ".")
    base = found(path)
    assert base.digest == str(manifest.digest)
    assert base.config.env == {"A": "1"}
    assert [layer.descriptor.media_type for layer in base.layers] == [kind, kind]
    assert base.tree.folder_links["lib"] == "usr/lib"
    assert base.tree.folders["opt"] == Folder("opt", 0o750, uid=1000, gid=100)
    target = BlobStore(tmp_path / "output")
    assert not target.folder.exists()
    for layer, content in zip(base.layers, (ROOTFS, UPPER), strict=True):
        layer.copy(target)
        assert target.read(layer.descriptor.digest) == compress(content)


def test_an_index_is_resolved_by_the_platform(found: Found, layout: Layout) -> None:
    other = tar_of(("etc/", 0o755), ("lib", "usr/lib32"), ("usr/lib32/", 0o755))
    both = [
        written(layout, [tar], GZIP, MediaType.OCI_LAYER_GZIP, architecture=architecture)
        for tar, architecture in ((ROOTFS, "amd64"), (other, "arm64"))
    ]
    index = Index(tuple(both))
    layout.blobs.put(index.to_bytes())
    layout.set_reference("base:1", index.descriptor())
    assert found(layout.folder).tree.folder_links["lib"] == "usr/lib"
    assert found(layout.folder, platform=ARM64).tree.folder_links["lib"] == "usr/lib32"


def test_a_platform_that_is_not_there_is_told_with_those_that_are(found: Found, layout: Layout) -> None:
    layout.set_reference("base:1", written(layout, [ROOTFS], GZIP, MediaType.OCI_LAYER_GZIP))
    with pytest.raises(UsageError, match=r"for linux/arm64; it holds .*linux/amd64"):
        found(layout.folder, platform=ARM64)


def saved_by_an_old_engine(path: Path, tars: list[bytes], promised: list[bytes] | None = None) -> Path:
    config = config_of(*(str(Digest.of(tar)) for tar in promised or tars)).to_bytes()
    manifest = [{"Config": "c.json", "RepoTags": ["base:1"], "Layers": [f"{n}/layer.tar" for n in range(len(tars))]}]
    layers = [(f"{number}/layer.tar", tar) for number, tar in enumerate(tars)]
    path.write_bytes(tar_of(*layers, ("c.json", config), ("manifest.json", json.dumps(manifest).encode())))
    return path


def test_what_an_old_engine_saves_is_compressed_once(found: Found, tmp_path: Path, blobs: BlobStore) -> None:
    path, said = saved_by_an_old_engine(tmp_path / "saved.tar", [ROOTFS, UPPER]), list[str]()
    base = found(path, say=said.append)
    assert said == [f"compressing {path}, once only"] * 2
    assert base.digest == str(base.config.digest)
    contents = [blobs.path(layer.descriptor.digest).read_bytes() for layer in base.layers]
    assert list(map(gzip.decompress, contents)) == [ROOTFS, UPPER]
    assert found(path, say=said.append) == base
    assert len(said) == 2


def test_a_layer_of_another_digest_is_found_out(found: Found, tmp_path: Path, blobs: BlobStore) -> None:
    path = saved_by_an_old_engine(tmp_path / "saved.tar", [ROOTFS], [UPPER])
    with pytest.raises(BuildError, match=r"is damaged: its layer is sha256:\w+, and should be"):
        found(path)
    assert not (blobs.folder / "blobs").exists()


def test_a_damaged_blob_is_not_copied(found: Found, layout: Layout, tmp_path: Path) -> None:
    layout.set_reference("base:1", written(layout, [ROOTFS], GZIP, MediaType.OCI_LAYER_GZIP))
    [layer] = found(layout.folder).layers
    blob = layout.blobs.path(layer.descriptor.digest)
    blob.chmod(0o644)
    blob.write_bytes(gzip.compress(UPPER))
    target = BlobStore(tmp_path / "output")
    with pytest.raises(ArtifactError, match=r"the base .*: the blob sha256:\w+ of \d+ bytes came as"):
        layer.copy(target)
    assert list(target.folder.rglob("*")) == []


@pytest.mark.parametrize(
    "layer", [b"no gzip", GZIP(ROOTFS)[:-40], GZIP(b"no tar" * 200)], ids=["none", "cut", "no tar"]
)
def test_a_layer_that_cannot_be_read_is_told(layer: bytes, found: Found, layout: Layout) -> None:
    manifest = written(layout, [ROOTFS], lambda _: layer, MediaType.OCI_LAYER_GZIP)
    layout.set_reference("base:1", manifest)
    with pytest.raises(BuildError, match="is damaged: a layer cannot be read"):
        found(layout.folder)


@pytest.mark.parametrize("name", ["./none", "none.tar", "/nowhere/base"])
def test_a_path_without_a_file_is_not_taken_for_a_reference(name: str, found: Found) -> None:
    with pytest.raises(UsageError, match="no file"):
        found(name)


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", ROOTFS[:700], GZIP(ROOTFS), tar_of(("home/", 0o755), ("home/file", b"x"))],
    ids=["empty", "no tar", "truncated", "compressed", "neither"],
)
def test_what_is_no_base_is_told_with_a_way_out(content: bytes, found: Found, tmp_path: Path) -> None:
    path = tmp_path / "base.tar"
    path.write_bytes(content)
    with pytest.raises(LjImageError) as caught:
        found(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_truncated_root_file_system_is_not_used(found: Found, tmp_path: Path) -> None:
    path = tmp_path / "base.tar"
    path.write_bytes(ROOTFS[: ROOTFS.index(b"12\n") + 1])
    with pytest.raises(LjImageError, match="damaged"):
        found(path)


class Vendor:
    """A registry that has one image, and is asked for its documents alone."""

    def __init__(self, layout: Layout, architecture: str = "amd64") -> None:
        tars = [ROOTFS]
        manifest = written(layout, tars, GZIP, MediaType.OCI_LAYER_GZIP, architecture=architecture)
        lying = image_in(layout.blobs, manifest, "vendor")
        layers = tuple(replace(layer, origin="vendor.example/pytorch") for layer in lying.layers)
        self.image = replace(lying, layers=layers)
        self.asked: list[tuple[str, str]] = []

    def __call__(self, reference: str, platform: OciPlatform) -> SourceImage:
        self.asked.append((reference, str(platform)))
        return self.image


def test_of_a_base_in_a_registry_no_layer_is_read_until_it_is_wanted(
    found: Found, layout: Layout, tmp_path: Path
) -> None:
    vendor = Vendor(layout)
    base = found(pull=vendor)
    assert vendor.asked == [(f"mirror.example/vendor/pytorch:25.02@sha256:{'1' * 64}", "linux/amd64")]
    assert base.tree == USR_MERGE
    target = BlobStore(tmp_path / "output")
    base.layers[0].copy(target)
    assert gzip.decompress(target.read(base.layers[0].descriptor.digest)) == ROOTFS


def test_a_base_whose_layers_were_read_elsewhere_is_known_wherever_it_comes_from(found: Found, layout: Layout) -> None:
    vendor = Vendor(layout)
    layout.set_reference("base:1", written(layout, [ROOTFS], GZIP, MediaType.OCI_LAYER_GZIP))
    assert found(pull=vendor, override="vendor.example/other:1").tree == USR_MERGE
    assert found(layout.folder).tree == found(pull=vendor).tree != USR_MERGE
    assert vendor.asked[0][0] == "mirror.example/vendor/other:1"


def test_a_base_for_another_processor_is_refused(found: Found, layout: Layout) -> None:
    with pytest.raises(BuildError, match="is for linux/arm64, and the release is built for linux/amd64"):
        found(pull=Vendor(layout, "arm64"))


@pytest.mark.parametrize(
    ("layers", "links"),
    [
        ([tar_of(("a", "b"), ("b", "c/d"), ("c", 0o755), ("c/d", 0o755))], {"a": "c/d", "b": "c/d"}),
        ([tar_of(("a", "/../../b"), ("b", 0o755))], {"a": "b"}),
        ([tar_of(("a/l", "../b/./x"), ("b/x/f", b""))], {"a/l": "b/x"}),
        ([tar_of(("a", "b"), ("b", "a"), ("c", "nowhere"), ("f", b""), ("d", "f"), ("root", "/"))], {}),
        ([tar_of(("a", "b"), ("b", 0o755)), tar_of((".wh.b", b""))], {}),
        ([tar_of(("a", "b"), ("b", 0o755)), tar_of((".wh.a", b""), ("a/f", b""))], {}),
        ([tar_of(("a", "b"), ("b", 0o755)), tar_of((".wh..wh..opq", b""), ("b", 0o755))], {}),
        ([tar_of(("d/a", "x"), ("d/x", 0o755)), tar_of(("d/.wh..wh..opq", b""), ("d/x", 0o755))], {}),
        ([tar_of(("d/a", "../x"), ("x", 0o755)), tar_of(("d", b"now a file"))], {}),
        ([tar_of(("b/f", b"")), tar_of(("a", "b"))], {"a": "b"}),
        ([tar_of(("lib", "usr/lib"), ("usr/lib/f", b"")), tar_of(("lib/f", b""))], {}),
    ],
)  # fmt: skip
def test_links_to_folders_are_those_of_all_layers_together(layers: list[bytes], links: dict[str, str]) -> None:
    assert base_tree(map(io.BytesIO, layers)).folder_links == links


def test_what_is_no_path_is_a_reference() -> None:
    assert [module._is_path(name) for name in ("debian:12", "host:5000/a/b@sha256:0", "~/x", "x.tar")] == [
        False,
        False,
        True,
        True,
    ]
