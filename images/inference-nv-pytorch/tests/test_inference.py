"""What an inference image of this family has to do, besides keeping its promised versions. Run by `lj-image verify`."""

import pytest

VERSION_OF_TORCH = "from importlib.metadata import version; print(version('torch'))"


def test_pip_does_not_replace_torch(host):
    version = host.check_output("python3 -c %s", VERSION_OF_TORCH)
    refused = host.run("python3 -m pip install --dry-run --no-index %s", f"torch!={version}")
    assert refused.failed
    assert f"(constraint) torch=={version}" in refused.stdout + refused.stderr


def test_work_starts_in_the_workspace(host):
    assert host.file("/workspace").is_directory


@pytest.mark.gpu
def test_torch_computes_on_the_gpu(host):
    program = "import torch; x = torch.ones(64, 64, device='cuda'); print(int((x @ x).sum()))"
    assert host.check_output("python3 -c %s", program) == "262144"
