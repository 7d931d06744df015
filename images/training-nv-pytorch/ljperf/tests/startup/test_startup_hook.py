"""The hook that each Python of the image runs at its start: nothing when nothing is asked, little when something is."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ljperf import startup

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = PROJECT / "src"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder like the image's site-packages: our package, our hook, and a module `late` that is to be patched."""
    (tmp_path / "ljperf").symlink_to(SOURCES / "ljperf")
    (tmp_path / "ljperf.pth").write_text((PROJECT / "ljperf.pth").read_text())
    return tmp_path


def python(site: Path, program: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program as in the image: the hook of `site` is read at the start."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("CHECKPOINT_", "LJ"))}
    begin = f"import site; site.addsitedir({str(site)!r})\n"
    return subprocess.run(
        [sys.executable, *options, "-c", begin + textwrap.dedent(program)],
        env=clean | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


LOADED = "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in ('ljperf', 'torch', 'click')))"


@pytest.mark.parametrize("environ", [{}, {"CHECKPOINT_OPTIMIZATION": "false"}, {"LJPERF_HOOKS": ""}])
def test_without_a_wish_nothing_is_awaited_and_nothing_imported(site: Path, environ: dict[str, str]) -> None:
    done = python(site, LOADED + "\nprint([each for each in sys.meta_path if hasattr(each, 'mark')])", **environ)
    assert done.stdout.splitlines() == ["['ljperf', 'ljperf.startup']", "[]"], done.stderr


@pytest.mark.parametrize("environ", [{"CHECKPOINT_OPTIMIZATION": "true"}, {"LJPERF_HOOKS": "check, compile"}])
def test_with_a_wish_only_a_finder_waits(site: Path, environ: dict[str, str]) -> None:
    done = python(site, LOADED + "\nprint(sum(hasattr(each, 'mark') for each in sys.meta_path))", **environ)
    assert done.stdout.splitlines() == ["['ljperf', 'ljperf.startup']", "1"], done.stderr


def test_isolated_interpreters_read_it_and_those_without_site_do_not(site: Path) -> None:
    assert python(site, "print(1)", "-I", CHECKPOINT_OPTIMIZATION="1").stdout == "1\n"
    bare = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; print('ljperf' in sys.modules)"], capture_output=True, text=True
    )
    assert bare.stdout == "False\n"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CHECKPOINT_OPTIMIZATION": "True"}, {"transformers.modeling_utils", "deepspeed.runtime.engine"}),
        ({"CHECKPOINT_OPTIMIZATION": "0"}, set()),
        ({"LJ_COMPILE": "1"}, {"deepspeed"}),
        ({"LJPERF_HOOKS": "check"}, {"deepspeed"}),
        ({"LJPERF_HOOKS": "check,compile"}, {"deepspeed", "transformers.trainer"}),
    ],
)
def test_each_wish_awaits_its_modules(environ: dict[str, str], expected: set[str]) -> None:
    found = set(startup.wanted(environ))
    assert expected <= found
    assert bool(found) == bool(expected)


PATCHING = """
    import sys, ljperf.startup as startup
    startup.HOOKS = (("late", lambda environ: True, "patcher:patch"),)
    startup.install({{}})
    {before}
    import late
    print(late.value, type(late.__spec__.loader).__name__)
"""


def test_a_module_is_patched_right_after_its_execution(site: Path) -> None:
    (site / "late.py").write_text("value = 'as it was'\n")
    (site / "patcher.py").write_text("def patch(module):\n    module.value = 'patched'\n")
    assert python(site, PATCHING.format(before="")).stdout == "patched SourceFileLoader\n"


def test_a_module_that_is_there_already_is_patched_at_once(site: Path) -> None:
    (site / "late.py").write_text("value = 'as it was'\n")
    (site / "patcher.py").write_text("def patch(module):\n    module.value = 'patched'\n")
    program = PATCHING.replace("import sys,", "import late, sys,").format(before="")
    assert python(site, program).stdout == "patched SourceFileLoader\n"


def test_a_patch_that_fails_is_one_line_and_the_module_is_as_it_was(site: Path) -> None:
    (site / "late.py").write_text("value = 'as it was'\n")
    (site / "patcher.py").write_text("def patch(module):\n    raise TypeError('another\\nsignature')\n")
    done = python(site, PATCHING.format(before=""))
    assert done.stdout == "as it was SourceFileLoader\n"
    assert done.stderr == "ljperf: late stays as it is: patcher: TypeError: another signature\n"
    assert python(site, PATCHING.format(before=""), RANK="3").stderr == ""


def test_inspect_still_finds_the_source(site: Path) -> None:
    (site / "late.py").write_text("def f():\n    return 'source'\n\n\nvalue = 1\n")
    (site / "patcher.py").write_text("def patch(module):\n    pass\n")
    done = python(site, PATCHING.format(before="") + "    import inspect; print(inspect.getsource(late.f))\n")
    assert "return 'source'" in done.stdout, done.stderr


def test_processes_started_by_multiprocessing_have_it_too(site: Path) -> None:
    program = """
        import multiprocessing, sys
        def ask(queue): queue.put(sum(hasattr(each, 'mark') for each in sys.meta_path))
        context = multiprocessing.get_context("fork"); queue = context.Queue()
        child = context.Process(target=ask, args=(queue,)); child.start(); print(queue.get(timeout=20)); child.join()
    """
    assert python(site, program, CHECKPOINT_OPTIMIZATION="1").stdout == "1\n"


def test_both_files_name_what_there_is() -> None:
    assert (PROJECT / "ljperf.pth").read_text() == "import ljperf.startup\n"
    place, _, name = (PROJECT / "ljperf.start").read_text().strip().partition(":")
    assert place == "ljperf.startup"
    assert callable(getattr(startup, name))


def test_every_awaited_patch_exists() -> None:
    for _module, _condition, target in startup.HOOKS:
        place, _, name = target.partition(":")
        assert (SOURCES / (place.replace(".", "/") + ".py")).exists(), target
        __import__(place)
        assert list(inspect.signature(getattr(sys.modules[place], name)).parameters) != []
