"""The part of `image.yaml` that says where a family is published, and the file of profiles that comes with the tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from lj_image.documents.strict import Strict
from lj_image.oci.capabilities import MediaTypes, UploadForm

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
"""Lower case, digits and single separators: what a repository path and a canonical id may hold."""
Size = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*(B|KB|MB|GB|KiB|MiB|GiB)$")]
"""A number of bytes with its unit, such as 4MiB."""
Host = Annotated[str, StringConstraints(pattern=r"^[^\s/{}]+$")]
"""A registry's host, with its port where that is not the usual one."""


class MovingTagEntry(Strict):
    """A tag that follows the newest release, in some variants only."""

    tag: str
    """A template, as the tags of variants are."""
    variants: list[str] = Field(min_length=1)


MovingTags = list[str | MovingTagEntry]
"""Templates of tags that follow the newest release: `latest`, `{release}`, `{release}-{variant}`."""


class PublicEndpoint(Strict):
    """One host for the whole world."""

    host: str
    profile: str | None = None
    """The kind of registry; by default what the host's name says, if anything."""
    moving_tags: MovingTags = Field(default_factory=list)


class RegionEntry(Strict):
    """A region of which there is more to say than its name."""

    name: Name
    host: Host | None = None
    """In place of the one that `vpc.host` gives."""
    profile: str | None = None
    """In place of the one of `vpc`."""
    moving_tags: MovingTags | None = None
    """In place of those of `vpc`; an empty list for none."""
    same_store_as: str | None = None
    """Another place, `public` or a region, that is the same store by another name."""


class VpcEndpoint(Strict):
    """A host per region."""

    host: Annotated[str, StringConstraints(pattern=r"\{region\}")]
    regions: list[Name | RegionEntry] = Field(min_length=1)
    profile: str | None = None
    """The kind of registry; by default what each host's name says, if anything."""
    moving_tags: MovingTags = Field(default_factory=list)

    @property
    def entries(self) -> tuple[RegionEntry, ...]:
        """All regions in their long form."""
        return tuple(RegionEntry(name=item) if isinstance(item, str) else item for item in self.regions)

    @property
    def region_names(self) -> tuple[str, ...]:
        """The names of all regions."""
        return tuple(entry.name for entry in self.entries)

    def host_of(self, entry: RegionEntry) -> str:
        """Return the host of a region."""
        return entry.host or self.host.replace("{region}", entry.name)


class ProfileEntry(Strict):
    """A kind of registry: what it takes and refuses, as far as that differs from the profile that it is like."""

    like: str | None = None
    """The profile that says the rest; without it, what is assumed of a registry of which nothing is known."""
    upload: UploadForm | None = None
    """How a layer's bytes go out: in chunks, in one open-ended stream, or in one request of known length."""
    chunk: Size | None = None
    """Of each chunk but the last."""
    last_chunk_in_put: bool | None = None
    """Whether the last chunk goes with the closing request."""
    mount: bool | None = None
    """Whether a repository can be given a layer of another one of the same registry."""
    media_types: MediaTypes | None = None
    """Which types of manifests are taken: of the OCI, of Docker, or any."""
    attestations: bool | None = None
    """Whether an index may name attestations beside its images."""
    referrers: bool | None = None
    """Whether manifests that say something about an image are taken beside it: signatures, bills of materials."""
    zstd: bool | None = None
    """Whether layers may be in zstd."""
    immutable_tags: bool | None = None
    """Whether a tag that exists can never be set again."""
    largest_layer: Size | None = None
    largest_manifest: Size | None = None


class BuiltInProfile(ProfileEntry):
    """A profile that comes with the tool."""

    hosts: list[str] = Field(default_factory=list)
    """Patterns of hosts that are of this kind, `*` for any text."""


class ProfilesFile(Strict):
    """`profiles.yaml` of the tool."""

    profiles: dict[Name, BuiltInProfile]


class EndpointsEntry(Strict):
    """Where the family is published."""

    public: PublicEndpoint
    vpc: VpcEndpoint
    profiles: dict[Name, ProfileEntry] = Field(default_factory=dict)
    """Kinds of registries of your own: `{our-harbor: {like: harbor, zstd: false}}`."""
