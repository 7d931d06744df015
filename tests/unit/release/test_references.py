from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import UsageError
from lj_image.release.references import all_references, targets

# As the vendor's notes of the releases write them.
PUBLIC = "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless"
BEIJING = "acs-registry-vpc.cn-beijing.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless"
SHANGHAI = "acs-registry-vpc.cn-shanghai.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless"


@pytest.mark.parametrize(
    ("regions", "public", "expected"),
    [
        ((), True, (PUBLIC,)),
        (("cn-beijing",), False, (BEIJING,)),
        (("cn-shanghai", "cn-beijing"), False, (SHANGHAI, BEIJING)),  # in the order asked for
        (("cn-beijing",), True, (PUBLIC, BEIJING)),  # the public host does not follow the region
        (("cn-beijing", "cn-beijing"), False, (BEIJING,)),
    ],
)
def test_each_endpoint_has_the_reference_of_the_vendors_notes(
    release: Release, config: Config, regions: tuple[str, ...], public: bool, expected: tuple[str, ...]
) -> None:
    found = targets(release, release.tag, regions, public, config)
    assert tuple(target.reference for target in found) == expected
    assert tuple(target.sent_to for target in found) == expected
    assert not any(target.rewritten for target in found)


@pytest.mark.parametrize("regions", [("all",), ("all", "cn-beijing"), ("all", "all")])
def test_all_is_every_region_of_the_manifest_once_and_not_the_public_place(
    release: Release, config: Config, regions: tuple[str, ...]
) -> None:
    found = targets(release, release.tag, regions, False, config)
    assert tuple(target.endpoint.region for target in found) == release.endpoints.regions


def test_all_after_a_region_puts_that_region_first(release: Release, config: Config) -> None:
    found = targets(release, release.tag, ("us-east-1", "all"), False, config)
    assert found[0].endpoint.region == "us-east-1"
    assert len(found) == len(release.endpoints.regions)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("cn-bejing", "cn-beijing"), ("CN-BEIJING", "cn-beijing"), ("cn_shanghai", "cn-shanghai"), ("ALL", "all")],
)
def test_unknown_region_is_answered_with_the_closest_names(
    release: Release, config: Config, written: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        targets(release, release.tag, (written,), True, config)
    assert written in caught.value.message
    assert meant in (caught.value.hint or "")


def test_region_like_no_other_is_answered_with_all_names(release: Release, config: Config) -> None:
    with pytest.raises(UsageError) as caught:
        targets(release, release.tag, ("zzz",), False, config)
    assert all(region in (caught.value.hint or "") for region in release.endpoints.regions)


def test_no_place_at_all_says_what_to_write(release: Release, config: Config) -> None:
    with pytest.raises(UsageError) as caught:
        targets(release, release.tag, (), False, config)
    assert all(word in (caught.value.hint or "") for word in ("--public", "--region", "cn-beijing"))


def test_rewriting_changes_where_bytes_go_and_never_the_name(
    release: Release, config_with: Callable[..., Config]
) -> None:
    config = config_with(
        **{
            "acs-registry-vpc.{region}.cr.aliyuncs.com": "127.0.0.1:5000/{region}",
            "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com": "staging.example:8443",
        }
    )
    public, beijing = targets(release, release.tag, ("cn-beijing",), True, config)
    assert (public.reference, beijing.reference) == (PUBLIC, BEIJING)
    assert public.sent_to == "staging.example:8443/egslingjun/training-nv-pytorch:25.02-serverless"
    assert beijing.sent_to == "127.0.0.1:5000/cn-beijing/egslingjun/training-nv-pytorch:25.02-serverless"
    assert public.rewritten
    assert beijing.rewritten


def test_all_references_are_the_public_one_and_one_per_region(release: Release) -> None:
    found = all_references(release, release.tag)
    assert found[0] == PUBLIC
    assert BEIJING in found
    assert len(found) == len(set(found)) == 1 + len(release.endpoints.regions)
