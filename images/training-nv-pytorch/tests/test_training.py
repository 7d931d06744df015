"""What a training image of this family has to do, besides keeping its promised versions. Run by `lj-image verify`."""

import pytest

VERSION_OF_TORCH = "from importlib.metadata import version; print(version('torch'))"


def test_python3_and_pip_belong_together(host):
    python = host.check_output("python3 -c %s", "import sys; print('%d.%d' % sys.version_info[:2])")
    assert f"(python {python})" in host.check_output("python3 -m pip --version")


def test_python3_finds_the_installed_torch_from_any_folder(host):
    found = host.check_output("cd /tmp && python3 -c %s", VERSION_OF_TORCH)
    assert found == host.check_output("cd / && python3 -c %s", VERSION_OF_TORCH)


def test_pip_does_not_replace_torch(host):
    version = host.check_output("python3 -c %s", VERSION_OF_TORCH)
    refused = host.run("python3 -m pip install --dry-run --no-index %s", f"torch!={version}")
    assert refused.failed
    assert f"(constraint) torch=={version}" in refused.stdout + refused.stderr


def test_pip_keeps_torch_where_it_fits(host):
    version = host.check_output("python3 -c %s", VERSION_OF_TORCH)
    assert host.run("python3 -m pip install --dry-run --no-index --no-deps %s", f"torch=={version}").rc == 0


def test_what_triton_launches_kernels_with_can_be_compiled(host):
    """As Triton does it at run time: the C compiler that it looks for, Python's headers, a shared library."""
    if host.run("python3 -c 'import triton.backends'").failed:
        pytest.skip("no Triton with backends in this image; where one is promised, its component's own test says so")
    headers = host.check_output(
        "python3 -c %s", "import sysconfig; print(sysconfig.get_path('include', 'posix_prefix'))"
    )
    compiler = host.check_output("command -v gcc || command -v clang")
    host.check_output("echo '#include <Python.h>' > /tmp/launcher.c")
    host.check_output(f"cd /tmp && {compiler} launcher.c -shared -fPIC -I{headers} -o launcher.so && rm launcher.*")


def test_work_starts_in_the_workspace(host):
    workspace = host.file("/workspace")
    assert workspace.is_directory
    assert host.run("cd /workspace && touch .probe && rm .probe").succeeded


@pytest.mark.gpu
def test_torch_computes_on_the_gpu(host):
    program = "import torch; x = torch.ones(64, 64, device='cuda'); print(int((x @ x).sum()))"
    assert host.check_output("python3 -c %s", program) == "262144"


@pytest.mark.gpu
def test_collectives_work_on_the_gpu(host):
    program = (
        "import torch, torch.distributed as d; "
        "d.init_process_group('nccl', init_method='file:///tmp/group', rank=0, world_size=1); "
        "x = torch.ones(8, device='cuda'); d.all_reduce(x); print(int(x.sum()))"
    )
    assert host.check_output("python3 -c %s", program).splitlines()[-1] == "8"
