"""The workflows of CI are valid, pinned, ask for little and print no secret; tests/integration/e2e runs them."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github/workflows/release.yml"
GITLAB = ROOT / ".gitlab-ci.yml"
SCRIPTS = ROOT / "scripts/ci"
RELEASES_OF_TWO = {"tiny": ("25.02", "25.03"), "other": ("1.0",)}


@pytest.fixture(scope="module")
def github() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(GITHUB.read_text())
    return found


@pytest.fixture(scope="module")
def gitlab() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(GITLAB.read_text())
    return found


def steps(github: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in github["jobs"].values():
        yield from job["steps"]


def lines(github: dict[str, Any], gitlab: dict[str, Any]) -> str:
    """Return every shell line of both."""
    own = [step.get("run", "") for step in steps(github)]
    jobs = [value for value in gitlab.values() if isinstance(value, dict)]
    own += [line for job in jobs for key in ("before_script", "script", "after_script") for line in job.get(key, ())]
    return "\n".join(own)


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.github-workflows", GITHUB), ("vendor.gitlab-ci", GITLAB)],
    ids=["GitHub", "GitLab"],
)
def test_a_workflow_fits_the_schema_of_its_service(schema: str, file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_action_is_pinned_to_a_commit_and_names_its_version() -> None:
    used = re.findall(r"uses: (\S+)(.*)", GITHUB.read_text())
    assert used
    for action, comment in used:
        assert re.fullmatch(r"actions/(checkout|upload-artifact)@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", comment), comment


def test_the_workflow_may_only_read_and_keeps_no_token(github: dict[str, Any]) -> None:
    assert github["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in github["jobs"].values())
    for step in steps(github):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_a_pull_request_gets_no_secret(github: dict[str, Any]) -> None:
    assert "pull_request_target" not in github[True]  # YAML 1.1 reads `on` as true
    assert "secrets." not in str(github["jobs"]["check"])


def test_runs_of_one_tag_wait_for_each_other(github: dict[str, Any], gitlab: dict[str, Any]) -> None:
    assert github["concurrency"]["group"] == "release ${{ inputs.tag || github.ref_name }}"
    assert github["concurrency"]["cancel-in-progress"] == "${{ github.event_name == 'pull_request' }}"
    assert gitlab[".publish"]["resource_group"] == "$CI_COMMIT_TAG"


def test_nothing_that_others_can_write_becomes_shell(github: dict[str, Any]) -> None:
    for step in steps(github):
        assert "${{" not in step.get("run", ""), step


def test_no_secret_is_printed(github: dict[str, Any], gitlab: dict[str, Any]) -> None:
    secret = "DOCKER_CONFIG_JSON|VENDOR_PASSWORD"
    assert not re.search(secret, lines(github, gitlab))
    assert not re.search(r"set -\w*x|(^|[;&|]\s*)(env|printenv|export -p)\b", lines(github, gitlab))
    used = "\n".join(path.read_text() for path in SCRIPTS.iterdir())
    assert "set -x" not in used
    mentions = [line.strip() for line in used.splitlines() if re.search(rf"\$\{{?({secret})", line)]
    assert mentions == [
        "if [[ -z ${DOCKER_CONFIG_JSON-} ]]; then",
        'printf \'%s\\n\' "$DOCKER_CONFIG_JSON" >"$DOCKER_CONFIG/config.json"',
    ]


def test_credentials_are_removed_whatever_happens(github: dict[str, Any], gitlab: dict[str, Any]) -> None:
    (removal,) = (
        step for step in github["jobs"]["publish"]["steps"] if step.get("run") == "scripts/ci/settings remove"
    )
    assert removal["if"] == "always()"
    assert gitlab["default"]["after_script"] == ["scripts/ci/settings remove"]
    assert "after_script" not in gitlab[".publish"]


def run(script: str, *arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPTS / script), *arguments], cwd=cwd, env=os.environ | env, capture_output=True, text=True
    )


def test_settings_are_for_their_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    env = {"LJ_IMAGE_CONFIG": str(tmp_path / "s/config.yaml"), "DOCKER_CONFIG": str(tmp_path / "d")}
    secret = '{"auths": {"registry.example": {"auth": "c2VjcmV0"}}}'
    written = run(
        "settings", "write", cwd=tmp_path, DOCKER_CONFIG_JSON=secret, LJ_IMAGE_CONFIG_YAML="variant: a", **env
    )
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    docker_config, config = tmp_path / "d/config.json", tmp_path / "s/config.yaml"
    assert docker_config.read_text() == secret + "\n"
    assert config.read_text() == "variant: a\n"
    for path in (docker_config, config, tmp_path / "d"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert run("settings", "remove", cwd=tmp_path, **env).returncode == 0
    assert not docker_config.exists()
    assert not config.exists()


def test_credentials_that_are_not_set_are_told_of(tmp_path: Path) -> None:
    env = {"LJ_IMAGE_CONFIG": str(tmp_path / "c"), "DOCKER_CONFIG": str(tmp_path / "d"), "DOCKER_CONFIG_JSON": ""}
    done = run("settings", "write", cwd=tmp_path, **env)
    assert done.returncode == 2
    assert "DOCKER_CONFIG_JSON is empty" in done.stderr


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """Return variables with a `lj-image` on PATH that prints what it was given."""
    program = tmp_path / "bin/lj-image"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "VARIANT": ""}


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("release/25.02",), "[release][25.02][--public][--region][all]"),
        (("release/training-nv-pytorch/25.02", ""), "[release][training-nv-pytorch/25.02][--public][--region][all]"),
        (("release/25.02", "cn-beijing"), "[release][25.02][--region][cn-beijing]"),
        (("release/25.02", "public", "--summary", "a b"), "[release][25.02][--public][--summary][a b]"),
    ],
)
def test_a_tag_names_the_release(arguments: tuple[str, ...], given: str, told: dict[str, str], tmp_path: Path) -> None:
    assert run("publish", *arguments, cwd=tmp_path, **told).stdout == given
    with_variant = run("publish", *arguments, cwd=tmp_path, **told | {"VARIANT": "open"}).stdout
    assert "[--variant][open]" in with_variant


@pytest.mark.parametrize("tag", ["", "v1.0", "release/", "release/--help", "release/a/b/25.02", "release/25.02\n--x"])
def test_another_tag_is_refused(tag: str, told: dict[str, str], tmp_path: Path) -> None:
    done = run("publish", tag, cwd=tmp_path, **told)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no tag of a release" in done.stderr


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two families and a base of ours."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example")
    folder = tmp_path / "repository"
    for image, releases in RELEASES_OF_TWO.items():
        for release in releases:
            write(folder / f"images/{image}/releases/{release}.yaml")
            write(folder / f"images/{image}/locks/{release}-vllm-open.txt")
        write(folder / f"images/{image}/image.yaml")
        write(folder / f"images/{image}/rootfs/releases/x.yaml")
    write(folder / "images/base/image.yaml")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit(folder)
    return folder


def write(path: Path, text: str = "before\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(folder: Path) -> None:
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", "commit", "-qm", "change"], cwd=folder, check=True)


EVERY = [f"{image}/{release}" for image, releases in sorted(RELEASES_OF_TWO.items()) for release in releases]


@pytest.mark.parametrize(
    ("path", "touched"),
    [
        ("README.md", []),
        ("images/tiny/releases/25.03.yaml", ["tiny/25.03"]),
        ("images/tiny/releases/25.04.yaml", ["tiny/25.04"]),
        ("images/tiny/locks/25.02-vllm-open.txt", ["tiny/25.02"]),
        ("images/tiny/image.yaml", ["tiny/25.02", "tiny/25.03"]),
        ("images/other/rootfs/releases/x.yaml", ["other/1.0"]),
        ("images/tiny/tests/test_own.py", []),
        ("images/tiny/notes/topics.yaml", []),
        ("images/base/image.yaml", EVERY),
        ("templates/Dockerfile.j2", EVERY),
        ("templates/components/pip.j2", EVERY),
        ("templates/notes/note.md.j2", []),
    ],
)
def test_a_change_touches_releases(path: str, touched: list[str], repository: Path) -> None:
    write(repository / path, "after\n")
    commit(repository)
    done = run("changed-releases", "HEAD~1", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == touched


def test_a_release_that_was_deleted_is_not_among_them(repository: Path) -> None:
    (repository / "images/tiny/releases/25.03.yaml").unlink()
    (repository / "images/tiny/locks/25.03-vllm-open.txt").unlink()
    commit(repository)
    assert run("changed-releases", "HEAD~1", cwd=repository).stdout == ""


def test_a_lock_of_another_architecture_is_compared_for_that(
    repository: Path, told: dict[str, str], tmp_path: Path
) -> None:
    lock = repository / "images/tiny/locks/25.02-vllm-open-arm64.txt"
    write(lock)
    commit(repository)
    new = run("check", "HEAD~1", str(tmp_path / "page.md"), cwd=repository, **told)
    assert (new.returncode, new.stderr) == (0, "")
    assert "variant vllm-open for linux/arm64: a new release" in new.stdout
    assert "[diff][tiny/25.02][--variant][vllm-open][--platform][linux/arm64]" in new.stdout
    assert "[tiny/25.02][--variant][vllm-open][--dockerfile]" in new.stdout
    write(lock, "after\n")
    commit(repository)
    changed = run("check", "HEAD~1", str(tmp_path / "page.md"), cwd=repository, **told)
    assert "[tiny/25.02][--variant][vllm-open][--platform][linux/arm64]" in changed.stdout
    assert "a new release" not in changed.stdout


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.iterdir()))
def test_scripts_are_programs_and_pass_shellcheck(script: str) -> None:
    assert os.access(SCRIPTS / script, os.X_OK)
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, "--external-sources", str(SCRIPTS / script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
