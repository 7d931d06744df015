"""Publishing through a real engine (`push --via-engine`) to real registries, which each test starts on loopback."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound
from docker.utils import kwargs_from_env
from scratch import Scratch

from lj_image.builders.docker.push import EngineSender, image_digests, push_tag, remote_digest
from lj_image.builders.docker.push_progress import LayerPush, NoProgress, PushProgress
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile, EndpointsConfig
from lj_image.errors import Interrupted, PartlyPublishedError, PublishError
from lj_image.release.outcome import Outcome, Wishes, published_line
from lj_image.release.publish import publish
from lj_image.release.record import Built, Pushed, Record, Records, Verified
from lj_image.release.references import Target, targets

pytestmark = [pytest.mark.engine, pytest.mark.registry]

IMAGES = Path(__file__).parents[2] / "images"
KEY = "25.02-serverless"
NOW = "2025-02-01T00:00:00+00:00"
USER, PASSWORD = "publisher", "publish-me"
HTPASSWD = "publisher:$2b$04$MxtvM4K9g6lGjIQpg79Gf.5jau2PtLZ1rOiSOinhpjC.x.IpuLp2a"  # of PASSWORD, by bcrypt
MANIFEST_TYPES = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


@dataclass
class Registry:
    """A registry process of a test."""

    folder: Path
    address: str
    password: str = ""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = (self.folder / "log").open("wb")
        command = ["docker-registry", "serve", str(self.folder / "config.yml")]
        self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        log.close()
        deadline = time.monotonic() + 20
        while self.request("GET", "") is None:
            assert time.monotonic() < deadline, "the registry does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def request(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> tuple[int, bytes] | None:
        """Ask the registry itself, past engine and product; None when it is down."""
        request = urllib.request.Request(f"http://{self.address}/v2/{path}", body, method=method)
        request.add_header("Accept", MANIFEST_TYPES)
        if kind:
            request.add_header("Content-Type", kind)
        if self.password:
            request.add_header("Authorization", f"Basic {login(self.password)}")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
                self.answer = answer.headers
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, b""
        except OSError:
            return None

    def digest(self, place: str) -> str | None:
        """Return the digest that the registry itself gives for `ADDRESS/repository:tag`."""
        repository, _, tag = place.removeprefix(f"{self.address}/").rpartition(":")
        answer = self.request("HEAD", f"{repository}/manifests/{tag}")
        assert answer is not None
        return self.answer["Docker-Content-Digest"] if answer[0] == 200 else None

    def move(self, place: str, other: str) -> None:
        """Let a tag hold what another tag of its repository holds."""
        repository, _, tag = place.removeprefix(f"{self.address}/").rpartition(":")
        status, manifest = self.request("GET", f"{repository}/manifests/{other}") or (0, b"")
        assert status == 200
        answer = self.request("PUT", f"{repository}/manifests/{tag}", manifest, self.answer["Content-Type"])
        assert answer is not None
        assert answer[0] == 201


def login(password: str) -> str:
    return base64.b64encode(f"{USER}:{password}".encode()).decode()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def new_registry(tmp_path: Path) -> Iterator[Callable[..., Registry]]:
    """Return a function that starts a registry; each ends with its test."""
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed: scripts/ensure-apt docker-registry")
    started: list[Registry] = []

    def make(password: str = "") -> Registry:
        folder = tmp_path / f"registry-{len(started)}"
        folder.mkdir()
        registry = Registry(folder, f"127.0.0.1:{free_port()}", password)
        (folder / "htpasswd").write_text(f"{HTPASSWD}\n")
        config = {
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": registry.address, "secret": "one"},
        }
        if password:
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        (folder / "config.yml").write_text(json.dumps(config))
        started.append(registry)
        registry.start()
        return registry

    yield make
    for registry in started:
        registry.stop()


@pytest.fixture(autouse=True)
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let no test see the logins of the person who runs it."""
    folder = tmp_path / "docker-config"
    folder.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    return folder / "config.json"


def packed_file(size_bytes: int) -> bytes:
    """Return a tar with one file of bytes that no other has."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        file = tarfile.TarInfo("file")
        file.size = size_bytes
        archive.addfile(file, io.BytesIO(secrets.token_bytes(size_bytes)))
    return packed.getvalue()


@pytest.fixture
def new_image(engine: docker.APIClient, scratch: Scratch) -> Callable[..., str]:
    """Return a function that makes an image of one random file, and gives its id."""

    def make(size_bytes: int = 3000) -> str:
        name = scratch.name(f"push-{secrets.token_hex(4)}")
        engine.import_image_from_data(packed_file(size_bytes), repository=name, tag="t")
        return str(engine.inspect_image(f"{name}:t")["Id"])

    return make


@pytest.fixture
def image(new_image: Callable[..., str]) -> str:
    return new_image()


@dataclass
class Publication:
    """Release 25.02 on its way to a public registry and to Beijing's."""

    release: Release
    records: Records
    sender: EngineSender
    targets: tuple[Target, ...]
    public: Registry
    beijing: Registry

    def run(self, **options: object) -> Outcome:
        given = {"records": self.records, "key": KEY, "sender": self.sender, "targets": self.targets} | options
        return publish(self.release, self.release.tag, **given)  # type: ignore[arg-type]

    def states(self, **options: object) -> list[str]:
        return [result.state for result in self.run(**options).results]

    def pushed(self) -> tuple[Pushed, ...]:
        record = self.records.read(KEY)
        assert record is not None
        return record.pushed

    def change(self, **changes: object) -> None:
        self.records.update(KEY, lambda record: replace(record, **changes))  # type: ignore[type-var,arg-type]

    def at_registries(self) -> list[str | None]:
        return [self.public.digest(self.targets[0].sent_to), self.beijing.digest(self.targets[1].sent_to)]


@pytest.fixture
def publication(
    engine: docker.APIClient, image: str, new_registry: Callable[..., Registry], tmp_path: Path
) -> Publication:
    public, beijing = new_registry(), new_registry()
    rewrite = {
        "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com": public.address,
        "acs-registry-vpc.{region}.cr.aliyuncs.com": f"{beijing.address}/{{region}}",
    }
    config = Config(
        file=None, values=ConfigFile(endpoints=EndpointsConfig(rewrite=rewrite)), cache_dir=tmp_path / "cache"
    )
    release = resolve(Catalog(IMAGES), config, "25.02", variant="serverless", only_configured=False)
    records = Records(config.cache_dir, release.image)
    record = Record(release.image, release.name, release.variant, built_of(image), verified_of(image))
    records.update(KEY, lambda _: record)
    places = targets(release, release.tag, ("cn-beijing",), True, config)
    return Publication(release, records, EngineSender(engine), places, public, beijing)


def built_of(image_id: str) -> Built:
    return Built(image_id, "x:t", "inputs", "plan", "lock", "docker", "base", NOW, 1.0, 1)


def verified_of(image_id: str) -> Verified:
    return Verified(image_id, True, 1, (), {}, NOW)


# --- one tag -------------------------------------------------------------------------------------------------------


def test_an_absent_tag_and_an_absent_repository_are_none_and_a_pushed_tag_reads_back(
    engine: docker.APIClient, image: str, new_registry: Callable[..., Registry]
) -> None:
    registry = new_registry()
    place = f"{registry.address}/egs/x:t"
    assert remote_digest(engine, place) is None
    digest = push_tag(engine, image, place)
    assert remote_digest(engine, place) == registry.digest(place) == digest
    assert remote_digest(engine, f"{registry.address}/egs/x:other") is None
    assert remote_digest(engine, f"{registry.address}/egs/never:t") is None


def test_the_local_tag_is_gone_afterwards_and_the_image_is_not(
    engine: docker.APIClient, image: str, new_registry: Callable[..., Registry]
) -> None:
    place = f"{new_registry().address}/egs/x:t"
    before = engine.inspect_image(image)["RepoTags"]
    push_tag(engine, image, place)
    assert engine.inspect_image(image)["RepoTags"] == before
    with pytest.raises(ImageNotFound):
        engine.inspect_image(place)


def test_a_local_tag_that_was_there_stays_what_it_was(
    engine: docker.APIClient, new_image: Callable[..., str], new_registry: Callable[..., Registry]
) -> None:
    registry, image, other = new_registry(), new_image(), new_image()
    ours, theirs = (f"{registry.address}/egs/x:{tag}" for tag in ("ours", "theirs"))
    with contextlib.ExitStack() as stack:
        for name, image_id in ((ours, image), (theirs, other)):
            engine.tag(image_id, *name.rsplit(":", 1))
            stack.callback(engine.remove_image, name)
        digest = push_tag(engine, image, ours)
        assert push_tag(engine, image, theirs) == digest
        assert engine.inspect_image(ours)["Id"] == image
        assert engine.inspect_image(theirs)["Id"] == other


def test_an_image_without_a_name_survives_its_push(
    engine: docker.APIClient, new_registry: Callable[..., Registry]
) -> None:
    place = f"{new_registry().address}/egs/x:t"
    image = json.loads(engine.import_image_from_data(packed_file(3000)))["status"]
    try:
        push_tag(engine, image, place)
        assert engine.inspect_image(image)["RepoTags"] == [place]
    finally:
        engine.remove_image(image, force=True)


def test_an_image_that_is_gone_is_named(engine: docker.APIClient, new_registry: Callable[..., Registry]) -> None:
    absent = f"sha256:{secrets.token_hex(32)}"
    assert image_digests(engine, absent) is None
    with pytest.raises(PublishError, match=f"does not have the image {absent}"):
        push_tag(engine, absent, f"{new_registry().address}/egs/x:t")


def test_layers_are_seen_on_their_way(
    engine: docker.APIClient, image: str, new_registry: Callable[..., Registry]
) -> None:
    class Watch(NoProgress):
        states: tuple[str, ...] = ()

        def layer(self, layer: LayerPush) -> None:
            self.states = (*self.states, layer.state)

    watch = Watch()
    registry = new_registry()
    push_tag(engine, image, f"{registry.address}/egs/x:t", watch)
    assert watch.states[-1] == "sent"
    push_tag(engine, image, f"{registry.address}/egs/x:again", watch)
    assert watch.states[-1] == "there"


# --- what can go wrong at one registry -----------------------------------------------------------------------------


def failures(engine: docker.APIClient, image: str, place: str) -> Iterator[PublishError]:
    """Give what asking and pushing raise, for both must say the same."""
    with pytest.raises(PublishError) as asked:
        remote_digest(engine, place)
    yield asked.value
    with pytest.raises(PublishError) as pushed:
        push_tag(engine, image, place)
    yield pushed.value


@pytest.mark.parametrize("auths", [{}, {"auth": login("wrong")}], ids=["no login", "wrong password"])
def test_a_refused_login_says_which_command_mends_it(
    engine: docker.APIClient,
    image: str,
    new_registry: Callable[..., Registry],
    docker_config: Path,
    auths: dict[str, str],
) -> None:
    registry = new_registry(PASSWORD)
    docker_config.write_text(json.dumps({"auths": {registry.address: auths} if auths else {}}))
    for error in failures(engine, image, f"{registry.address}/egs/x:t"):
        assert "refuses the login" in error.message
        assert f"docker login {registry.address}" in (error.hint or "")
        assert "wrong" not in "".join(error.lines())
    assert registry.digest(f"{registry.address}/egs/x:t") is None


def test_a_login_from_the_docker_config_opens_the_registry(
    engine: docker.APIClient, image: str, new_registry: Callable[..., Registry], docker_config: Path
) -> None:
    registry = new_registry(PASSWORD)
    docker_config.write_text(json.dumps({"auths": {registry.address: {"auth": login(PASSWORD)}}}))
    place = f"{registry.address}/egs/x:t"
    assert remote_digest(engine, place) is None
    assert push_tag(engine, image, place) == remote_digest(engine, place)


def test_a_login_from_a_helper_opens_the_registry(
    engine: docker.APIClient,
    image: str,
    new_registry: Callable[..., Registry],
    docker_config: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = new_registry(PASSWORD)
    helper = docker_config.parent / "docker-credential-test"
    answer = json.dumps({"ServerURL": registry.address, "Username": USER, "Secret": PASSWORD})
    helper.write_text(f"#!/bin/sh\necho '{answer}'\n")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(helper.parent), prepend=":")
    docker_config.write_text(json.dumps({"credHelpers": {registry.address: "test"}}))
    place = f"{registry.address}/egs/x:t"
    assert push_tag(engine, image, place) == remote_digest(engine, place)


def test_an_absent_registry_refuses_the_connection(engine: docker.APIClient, image: str) -> None:
    for error in failures(engine, image, f"127.0.0.1:{free_port()}/egs/x:t"):
        assert "refuses the connection" in error.message


def test_a_vpc_host_that_has_no_address_here_is_explained(engine: docker.APIClient, image: str) -> None:
    for error in failures(engine, image, "acs-registry-vpc.cn-nowhere.invalid/egs/x:t"):
        assert "cannot be found by name from here" in error.message
        assert "inside its region's VPC" in (error.hint or "")


def test_an_engine_that_is_silent_for_longer_than_the_clients_timeout_is_waited_for(
    image: str, new_registry: Callable[..., Registry]
) -> None:
    registry = new_registry()
    impatient = docker.APIClient(**kwargs_from_env(), version="auto", timeout=1)
    assert registry.process is not None
    registry.process.send_signal(signal.SIGSTOP)
    timer = threading.Timer(3, registry.process.send_signal, (signal.SIGCONT,))
    timer.start()
    try:
        assert push_tag(impatient, image, f"{registry.address}/egs/x:t").startswith("sha256:")
    finally:
        timer.join()
        impatient.close()


# --- a whole publication -------------------------------------------------------------------------------------------


def test_two_places_end_on_one_digest_which_the_registries_themselves_confirm(publication: Publication) -> None:
    outcome = publication.run()
    assert [result.state for result in outcome.results] == ["published", "published"]
    assert outcome.error() is None
    digest = outcome.results[0].digest
    assert publication.at_registries() == [digest, digest]
    assert published_line(outcome) == " ".join(f"{target.reference}@{digest}" for target in publication.targets)
    assert [(item.reference, item.sent_to, item.digest) for item in publication.pushed()] == [
        (target.reference, target.sent_to, digest) for target in publication.targets
    ]


def test_the_second_time_all_is_there_already(publication: Publication) -> None:
    publication.run()
    assert publication.states(sender=NeverPushes(publication.sender)) == ["already", "already"]


def test_a_released_tag_is_not_moved_and_is_with_force(publication: Publication, new_image: Callable[..., str]) -> None:
    old = publication.run().results[0].digest
    rebuilt = new_image()
    publication.change(built=built_of(rebuilt), verified=verified_of(rebuilt))
    refused = publication.run(sender=NeverPushes(publication.sender))
    assert [result.state for result in refused.results] == ["refused", "refused"]
    assert all(str(old) in result.message and rebuilt in result.message for result in refused.results)
    assert type(refused.error()) is PublishError
    assert publication.at_registries() == [old, old]
    forced = publication.run(wishes=Wishes(force_tag=True))
    assert [result.state for result in forced.results] == ["published", "published"]
    assert publication.at_registries() == [forced.results[0].digest] * 2
    assert forced.results[0].digest != old
    assert {(item.image_id, item.digest) for item in publication.pushed()} == {(rebuilt, forced.results[0].digest)}


def test_a_tag_that_somebody_moves_before_it_is_read_back_is_reported(
    engine: docker.APIClient, publication: Publication, new_image: Callable[..., str]
) -> None:
    place = publication.targets[1].sent_to
    theirs = push_tag(engine, new_image(), f"{place.rpartition(':')[0]}:theirs")
    sender = Hooked(publication.sender, after={place: lambda: publication.beijing.move(place, "theirs")})
    outcome = publication.run(sender=sender)
    assert [result.state for result in outcome.results] == ["published", "failed"]
    assert all(
        word in outcome.results[1].message for word in ("moved meanwhile", theirs, str(outcome.results[0].digest))
    )
    assert isinstance(outcome.error(), PartlyPublishedError)
    assert [item.reference for item in publication.pushed()] == [publication.targets[0].reference]


def test_one_region_down_leaves_the_other_done_and_a_rerun_touches_only_that_one(publication: Publication) -> None:
    publication.beijing.stop()
    outcome = publication.run()
    assert [result.state for result in outcome.results] == ["published", "failed"]
    error = outcome.error()
    assert isinstance(error, PartlyPublishedError)
    assert error.exit_code == 3
    assert publication.targets[1].reference in error.message
    publication.beijing.start()
    again = Hooked(publication.sender)
    assert publication.states(sender=again) == ["already", "published"]
    assert again.pushed == [publication.targets[1].sent_to]
    assert len(set(publication.at_registries())) == 1


def test_a_region_that_fails_during_the_push_is_the_only_one_that_fails(publication: Publication) -> None:
    first = publication.targets[0].sent_to
    outcome = publication.run(sender=Hooked(publication.sender, after={first: publication.beijing.stop}))
    assert [result.state for result in outcome.results] == ["published", "failed"]
    publication.beijing.start()
    assert publication.states() == ["already", "published"]


def test_dry_run_sends_nothing(publication: Publication) -> None:
    assert publication.states(wishes=Wishes(dry_run=True)) == ["planned", "planned"]
    assert publication.at_registries() == [None, None]
    assert publication.pushed() == ()


@pytest.mark.parametrize("why", ["unverified", "another image verified", "partial", "gone from the engine"])
def test_an_image_that_is_not_fit_goes_nowhere(publication: Publication, image: str, why: str) -> None:
    absent = f"sha256:{'0' * 64}"
    publication.change(
        **{
            "unverified": {"verified": None},
            "another image verified": {"verified": verified_of(absent)},
            "partial": {"built": replace(built_of(image), partial=True)},
            "gone from the engine": {"built": built_of(absent), "verified": verified_of(absent)},
        }[why]
    )
    with pytest.raises(PublishError):
        publication.run()
    assert publication.at_registries() == [None, None]


def test_without_verification_the_record_says_so(publication: Publication) -> None:
    publication.change(verified=None)
    assert publication.states(verify=False) == ["published", "published"]
    assert [item.verified for item in publication.pushed()] == [False, False]


def test_a_run_killed_after_a_push_and_before_the_record_finds_it_done(
    engine: docker.APIClient, publication: Publication
) -> None:
    place = publication.targets[0].sent_to
    engine.tag(publication.records.read(KEY).built.image_id, *place.rsplit(":", 1))  # type: ignore[union-attr]
    try:
        # A name that was there before stays: what a killed run leaves behind.
        digest = push_tag(engine, publication.records.read(KEY).built.image_id, place)  # type: ignore[union-attr]
        outcome = publication.run()
        assert [result.state for result in outcome.results] == ["already", "published"]
        assert publication.at_registries() == [digest, digest]
    finally:
        engine.remove_image(place)


def test_ctrl_c_in_mid_push_stops_the_engine_and_leaves_nothing_half_done(
    engine: docker.APIClient, publication: Publication, new_image: Callable[..., str]
) -> None:
    large = new_image(24 * 1024 * 1024)
    publication.change(built=built_of(large), verified=verified_of(large))
    names = engine.inspect_image(large)["RepoTags"]

    class PressCtrlC(NoProgress):
        place = ""

        def begin(self, sent_to: str) -> None:
            self.place = sent_to

        def layer(self, layer: LayerPush) -> None:
            if self.place == publication.targets[1].sent_to and layer.state == "sending":
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="1 of 2") as caught:
        publication.run(progress=PressCtrlC())
    assert caught.value.exit_code == 130
    time.sleep(2)  # an engine that went on would be done by then
    assert publication.at_registries()[1] is None
    assert [item.reference for item in publication.pushed()] == [publication.targets[0].reference]
    assert engine.inspect_image(large)["RepoTags"] == names
    assert publication.states() == ["already", "published"]


class Hooked:
    """A sender that remembers what it pushed, and does something after a push."""

    def __init__(self, sender: EngineSender, after: dict[str, Callable[[], None]] | None = None) -> None:
        self._sender = sender
        self._after = after or {}
        self.pushed: list[str] = []

    def digests(self, image_id: str) -> Sequence[str] | None:
        return self._sender.digests(image_id)

    def remote_digest(self, sent_to: str) -> str | None:
        return self._sender.remote_digest(sent_to)

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        digest = self._sender.push(image_id, sent_to, progress)
        self.pushed.append(sent_to)
        self._after.get(sent_to, lambda: None)()
        return digest

    def push_everywhere(self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: object) -> None:
        return None

    is_parallel = False

    def cut_off(self) -> None:
        """Do nothing."""


class NeverPushes(Hooked):
    """A sender that may only ask."""

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        raise AssertionError(f"pushed {sent_to}")
