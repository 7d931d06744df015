"""The lines of our workflows, taken from the files themselves, in a clone with the small family in it."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from workflow_jobs import Outcome, Runner

from standins import small
from standins.commands import PROGRAM, Project
from standins.registries import Registry
from unit.lock.loopback import Loopback

pytestmark = [pytest.mark.engine, pytest.mark.registry]

ROOT = Path(__file__).parents[3]
PLACES = ("public", "north", "south")
NOTES = "notes: {product: the tests, scenario: Tests, framework: none, languages: [en]}\n"
PASSWORD = "hunter2-hunter2"
CREDENTIALS = base64.b64encode(f"release:{PASSWORD}".encode()).decode()
DOCKER_CONFIG = json.dumps({"auths": {"registry.example": {"auth": CREDENTIALS}}})


@dataclass
class Site:
    """A clone of this repository, whose main branch has the family, and what runs its jobs."""

    project: Project
    image: str
    prefix: str
    registry: Registry
    packages: Loopback
    kits: Loopback

    @property
    def runner(self) -> Runner:
        """A fresh machine of the service, on which cache and engine were kept."""
        temp = self.project.folder.parent / f"temp-{secrets.token_hex(3)}"
        env = {"LJ_IMAGE_CACHE": str(self.project.cache), "NO_PROXY": "127.0.0.1,localhost", **self.project.env}
        return Runner(self.project.folder, temp, PROGRAM, env | {"HOME": str(self.project.folder.parent / "home")})

    @property
    def tag(self) -> str:
        """The tag that publishes."""
        return f"release/{self.image}/25.02"

    def config(self, **elsewhere: str) -> str:
        """Return what the variable LJ_IMAGE_CONFIG_YAML holds."""
        at = {place: f"{self.registry.address}/{self.prefix}/{place}" for place in PLACES} | elsewhere
        rewrite = {"registry.example": at["public"]}
        rewrite |= {f"registry-vpc.{region}.example": at[region] for region in ("north", "south")}
        endpoints = {"rewrite": rewrite}
        return json.dumps(small.settings(self.packages, self.kits, build={"network": "none"}, endpoints=endpoints))

    def digests(self) -> list[str | None]:
        """Return what each place has."""
        return [self.registry.digest(f"{self.prefix}/{place}/tests/{self.image}", "25.02-plain") for place in PLACES]

    def git(self, *arguments: str) -> str:
        """Run git in the clone."""
        who = ("-c", "user.name=A", "-c", "user.email=a@example")
        command = ["git", *who, *arguments]
        return subprocess.run(command, cwd=self.project.folder, check=True, capture_output=True, text=True).stdout

    def commit(self, words: str) -> None:
        """Commit the family as it is."""
        self.git("add", "--force", f"images/{self.image}")
        self.git("commit", "-qm", words)

    def pull_request(self, service: str) -> Outcome:
        """Run the job that checks what is checked out against main."""
        if service == "GitHub":
            return self.runner.github("check", {"vars.LJ_IMAGE_CONFIG_YAML": self.config()}, GITHUB_BASE_REF="main")
        base = self.git("rev-parse", "origin/main").strip()
        done = self.runner.gitlab("check", CI_MERGE_REQUEST_DIFF_BASE_SHA=base, LJ_IMAGE_CONFIG_YAML=self.config())
        page = self.project.folder / "build/ci/changes.md"
        done.summary = page.read_text() if page.exists() else ""
        return done

    def publish(self, service: str, region: str = "", **elsewhere: str) -> Outcome:
        """Run the job of a tag, or the one that runs a region again, after a clean checkout."""
        self.git("checkout", "-q", f"refs/tags/{self.tag}")
        shutil.rmtree(self.project.folder / "build", ignore_errors=True)
        if service == "GitLab":
            job, more = ("publish-region", {"REGION": region}) if region else ("publish", {})
            secret = {"LJ_IMAGE_CONFIG_YAML": self.config(**elsewhere), "DOCKER_CONFIG_JSON": DOCKER_CONFIG}
            return self.runner.gitlab(job, CI_COMMIT_TAG=self.tag, VARIANT="plain", **secret, **more)
        known = {
            "vars.LJ_IMAGE_CONFIG_YAML": self.config(**elsewhere),
            "secrets.DOCKER_CONFIG_JSON": DOCKER_CONFIG,
            "inputs.tag || github.ref_name": self.tag,
            "inputs.region": region,
            "vars.LJ_IMAGE_VARIANT": "plain",
            "secrets.VENDOR_PASSWORD": PASSWORD,
        }
        return self.runner.github("publish", known)


@pytest.fixture
def site(
    tmp_path: Path,
    base_image: str,
    base_rootfs: Path,
    registry: str,
    packages: Loopback,
    kits: Loopback,
    remove_images: Callable[[str], None],
) -> Site:
    """Return the clone; the family has a name of its own, since an engine has one image of a name."""
    unique = secrets.token_hex(4)
    clone, image = tmp_path / "clone", f"every-kind-{unique}"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    shutil.copytree(ROOT / "tests/families/every-kind", clone / "images" / image)
    manifest = clone / "images" / image / "image.yaml"
    manifest.write_text(NOTES + manifest.read_text().replace("image: every-kind", f"image: {image}", 1))
    (tmp_path / "home").mkdir()
    project = Project(clone, {"EVERY_KIND_TOKEN": small.TOKEN, "HOME": str(tmp_path / "home")})
    project.keep(base_rootfs)
    made = Site(project, image, f"workflows-{unique}", Registry(registry), packages, kits)
    project.config.write_text(made.config())
    project.run("lock", f"{image}/25.02")
    project.config.unlink()
    made.git("checkout", "-q", "-B", "main")
    made.commit("tests: the small family")
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    made.git("tag", made.tag)
    remove_images(image)
    return made


services = pytest.mark.parametrize("service", ["GitHub", "GitLab"])


def change(site: Site, *, lock: bool) -> None:
    """Commit another version of the tool on a branch."""
    site.git("checkout", "-q", "-b", "change")
    release = site.project.folder / f"images/{site.image}/releases/25.02.yaml"
    release.write_text(release.read_text().replace('tool: "1.0"', 'tool: "1.1"'))
    if lock:
        site.project.config.write_text(site.config())
        site.project.run("lock", f"{site.image}/25.02")
        site.project.config.unlink()
    site.commit("images: a newer tool")


@services
def test_a_pull_request_is_told_what_it_changes(site: Site, service: str) -> None:
    change(site, lock=True)
    done = site.pull_request(service)
    assert done.code == 0, done.said
    assert "pip install --quiet ." in done.said
    assert "variant plain" in done.summary
    row = next(line for line in done.summary.splitlines() if "1.0" in line and "1.1" in line)
    assert "ool" in row
    assert any(line.startswith("-") and "tool" in line for line in done.summary.splitlines())
    assert any(line.startswith("+") and "tool" in line for line in done.summary.splitlines())
    assert "training-nv-pytorch" not in done.summary


def test_a_stale_lock_fails_a_pull_request_and_is_on_its_page(site: Site) -> None:
    change(site, lock=False)
    done = site.pull_request("GitHub")
    assert done.code == 2, done.said
    assert f"lj-image lock {site.image}/25.02" in done.summary or "is stale" in done.summary


@services
def test_a_tag_publishes_and_a_region_that_failed_is_run_again_alone(site: Site, service: str) -> None:
    done = site.publish(service, north="localhost:9/nobody")
    assert done.code == 3, done.said
    digest, nothing, south = site.digests()
    assert digest is not None
    assert (nothing, south) == (None, digest)
    output = site.project.folder / f"build/release/{site.image}/25.02-plain"
    assert "2 of 3 places of this release have it; missing: north." in (output / "summary.md").read_text()
    assert {"release.json", "verify.junit.xml", "notes.en.md"} <= {path.name for path in output.iterdir()}

    again = site.publish(service, region="north")
    assert again.code == 0, again.said
    assert site.digests() == [digest] * 3
    assert "verify: skipped, this image was proven at" in again.said
    targets = json.loads((output / "release.json").read_text())["targets"]
    assert [(target["region"], target["state"]) for target in targets] == [("north", "published")]
    if service == "GitHub":
        assert again.summary == (output / "summary.md").read_text()
    for job in (done, again):
        assert PASSWORD not in job.said + job.summary
        assert CREDENTIALS not in job.said + job.summary
    files = [path for path in site.project.folder.parent.rglob("*") if path.is_file()]
    assert [path for path in files if CREDENTIALS.encode() in path.read_bytes()] == []


def test_a_region_is_not_run_again_without_its_name(site: Site) -> None:
    site.git("checkout", "-q", f"refs/tags/{site.tag}")
    done = site.runner.gitlab(
        "publish-region", CI_COMMIT_TAG=site.tag, LJ_IMAGE_CONFIG_YAML="{}", DOCKER_CONFIG_JSON=DOCKER_CONFIG
    )
    assert done.code != 0
    assert "start this job with the variable REGION" in done.said
    assert os.listdir(f"{site.project.folder}.settings/docker") == []  # noqa: PTH208  # names are enough
