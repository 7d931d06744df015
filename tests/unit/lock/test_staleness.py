from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.catalog.release import Release
from lj_image.errors import LockError
from lj_image.lock.inputs import inputs_of
from lj_image.lock.lock import Lock
from lj_image.lock.lockfile import lock_path, with_digest, write_lock
from lj_image.lock.staleness import differences, require_fresh
from unit.lock.releases import archive, pip, release


def lock_of(asked: Release) -> Lock:
    return with_digest(Lock(asked.key, inputs_of(asked), (), (), ""))


def test_inputs_are_sorted_lines_without_an_address() -> None:
    asked = release(
        transformers=pip(("Transformers", "4.48.3")),
        cudnn=pip(("nvidia-cudnn-cu12", "9.7.0.66"), index="vendor", overrides=True),
        accl_n=archive("accl.tar.gz"),
        base={"torch": "2.6.0a0+ecf3bae40a.nv25.1", "PIP": "23.0.1"},
        protected=("Torch",),
    )
    assert inputs_of(asked) == (
        "archive accl-n 1 file accl.tar.gz location vendor",
        "base pip==23.0.1",
        "base torch==2.6.0a0+ecf3bae40a.nv25.1 (protected)",
        "override nvidia-cudnn-cu12==9.7.0.66",
        "platform linux/amd64 glibc 2.36",
        "python 3.11",
        "require nvidia-cudnn-cu12==9.7.0.66 [component cudnn, index vendor]",
        "require transformers==4.48.3 [component transformers, index pypi]",
    )


def test_fresh_lock_has_no_differences(tmp_path: Path) -> None:
    asked = release(app=pip(("app", "1")), folder=tmp_path)
    write_lock(lock_of(asked), lock_path(asked))
    assert differences(asked, lock_of(asked)) == ()
    assert require_fresh(asked, lock_path(asked)) == lock_of(asked)


def test_differences_stand_together_old_before_new() -> None:
    before = release(ray=pip(("ray", "2.42.1")), gone=pip(("gone", "1")), base={"pip": "23.0.1"})
    after = release(ray=pip(("ray", "2.43.0")), new=pip(("new", "1")), base={"pip": "24.0"})
    assert differences(after, lock_of(before)) == (
        "- base pip==23.0.1",
        "+ base pip==24.0",
        "- require gone==1 [component gone, index pypi]",
        "+ require new==1 [component new, index pypi]",
        "- require ray==2.42.1 [component ray, index pypi]",
        "+ require ray==2.43.0 [component ray, index pypi]",
    )


def test_stale_lock_is_refused_with_what_changed_and_the_command(tmp_path: Path) -> None:
    before = release(ray=pip(("ray", "2.42.1")), folder=tmp_path)
    after = release(ray=pip(("ray", "2.43.0")), folder=tmp_path)
    write_lock(lock_of(before), lock_path(before))
    with pytest.raises(LockError, match=r"the lock of 25\.02-open is stale") as error:
        require_fresh(after, lock_path(after))
    assert error.value.hint is not None
    assert error.value.hint.splitlines() == [
        "- require ray==2.42.1 [component ray, index pypi]",
        "+ require ray==2.43.0 [component ray, index pypi]",
        "run: lj-image lock 25.02 --variant open",
    ]


def test_the_command_for_a_stale_lock_says_the_image_where_the_release_alone_means_several(tmp_path: Path) -> None:
    before = release(ray=pip(("ray", "2.42.1")), folder=tmp_path)
    after = replace(release(ray=pip(("ray", "2.43.0")), folder=tmp_path), image_in_commands="tiny")
    write_lock(lock_of(before), lock_path(before))
    with pytest.raises(LockError, match="stale") as error:
        require_fresh(after, lock_path(after))
    assert str(error.value.hint).endswith("run: lj-image lock tiny/25.02 --variant open")


def test_lock_of_another_release_is_refused(tmp_path: Path) -> None:
    asked = release(app=pip(("app", "1")), folder=tmp_path)
    other = with_digest(Lock("25.03-open", inputs_of(asked), (), (), ""))
    write_lock(other, lock_path(asked))
    with pytest.raises(LockError, match=r"it is that of 25\.03-open"):
        require_fresh(asked, lock_path(asked))


def test_an_extra_is_part_of_what_is_asked_and_a_changed_one_is_a_difference() -> None:
    before = release(raylib=pip(("raylib", "5")), ray=pip(("ray", "2.42.1")))
    after = release(raylib=pip(("raylib", "5")), ray=pip(("ray", "2.42.1"), extras=("cgraph", "default")))
    assert differences(after, lock_of(before)) == (
        "- require ray==2.42.1 [component ray, index pypi]",
        "+ require ray[cgraph,default]==2.42.1 [component ray, index pypi]",
    )
    one_less = release(raylib=pip(("raylib", "5")), ray=pip(("ray", "2.42.1"), extras=("default",)))
    assert len(differences(one_less, lock_of(after))) == 2
