"""ljperf in the image: its hook costs nothing unless asked, and each of its commands ends well on processors alone.

Two ranks train the model `tiny` in every framework. Without a GPU this says that they work, not how fast.
"""

import json

import pytest

RUN_S = 300.0
"""For commands that start two ranks: importing PyTorch and DeepSpeed takes most of a minute on a slow disk."""
FOLDER = "/tmp/ljperf-verify"
RUNS = {
    "deepspeed": "--model deepspeed/tiny --zero 3 --compile --recompute 2",
    "hf": "--model hf/tiny --zero 3 --compile --recompute 2",
    "fsdp": "--model fsdp/tiny --compile --recompute full",
    "ddp": "--model ddp/tiny",
}
"""Each framework once, with all that it can do: a run without the optimisations is a part of the ablation's."""
MODULES = (
    "import sys; print(*(name for name in sys.modules if name.split('.')[0] in ('ljperf', 'torch', 'transformers')))"
)


@pytest.fixture(scope="module", autouse=True)
def folder(host):
    """Give each verification a folder of its own; an image without ljperf promises nothing of it."""
    if host.run("python3 -m pip show ljperf").rc != 0:
        pytest.skip("ljperf is not in this image; where it is promised, the component's own test says so")
    host.check_output(f"rm -rf {FOLDER} && mkdir -p {FOLDER}")


def ended_well(host, command, code=0):
    """Run a command of ljperf in the folder, and return what it printed; fails with all that it said."""
    done = host.run(f"cd {FOLDER} && DS_ACCELERATOR=cpu OMP_NUM_THREADS=1 {command}", timeout_s=RUN_S)
    assert done.rc == code, f"{command}: {done.rc}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def read(host, name):
    return json.loads(host.file(f"{FOLDER}/{name}").content_string)


def test_pip_knows_it_and_its_command_is_on_the_path(host):
    version = host.check_output("python3 -m pip show ljperf 2>/dev/null | sed -n 's/^Version: //p'")
    assert host.check_output("ljperf --version").split()[-1] == version


def test_a_python_that_asks_for_nothing_imports_nothing_of_it_but_its_hook(host):
    found = set(host.check_output(f'env -u CHECKPOINT_OPTIMIZATION -u LJPERF_HOOKS python3 -c "{MODULES}"').split())
    assert found <= {"ljperf", "ljperf.startup"}


def test_a_python_that_asks_imports_the_hook_alone_until_transformers_comes(host):
    found = host.check_output(f'CHECKPOINT_OPTIMIZATION=true LJPERF_HOOKS=check,compile python3 -c "{MODULES}"').split()
    assert {name for name in found if not name.startswith("ljperf.startup")} <= {"ljperf"}


def test_help_needs_no_torch(host):
    assert "benchmark" in host.check_output("ljperf --help")
    program = f"import ljperf.cli; {MODULES}"
    assert "torch" not in host.check_output(f'python3 -c "{program}"').split()


@pytest.mark.parametrize("framework", RUNS)
def test_two_ranks_train_tiny(host, framework):
    common = "--micro-batch 2 --sequence 64 --steps 2 --warmup 1 --device cpu --nproc 2"
    ended_well(host, f"ljperf benchmark {RUNS[framework]} {common} --json {framework}.json")
    found = read(host, f"{framework}.json")
    assert found["complete"] is True
    assert found["tokens_per_second"] > 0
    assert 5.0 < found["loss"]["last"] < 8.0  # tiny starts at ln(512) = 6.2
    if framework == "deepspeed":
        assert found["compile"]["breaks"] == 0
    if "--compile" in RUNS[framework]:
        assert found["compile"]["kernels"] > 0  # generated in C++, and built in the image


def test_two_runs_are_compared(host):
    assert "tokens" in ended_well(host, "ljperf benchmark --compare deepspeed.json ddp.json")


def test_plan_recommends_a_number_of_layers(host):
    options = "--model deepspeed/llama3-8b --world-size 8 --zero 3 --micro-batch 2 --sequence 4096 --device h20-96g"
    json.loads(ended_well(host, f"ljperf plan {options} --json"))
    assert "recompute the first " in ended_well(host, f"ljperf plan {options} --explain")


def test_check_finds_what_deepspeed_would_not_use(host):
    config = {"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 15099494.4}}
    host.check_output(f"echo '{json.dumps(config)}' > {FOLDER}/c.json")
    said = ended_well(host, "ljperf check c.json", code=1)
    assert "/zero_optimization/stage3_prefetch_bucket_size" in said


def test_ablation_says_what_each_step_contributes(host):
    options = "--model ddp/tiny --steps base,checkpoint --recompute 2 --repeats 1"
    sizes = "--micro-batch 1 --sequence 32 --steps 2 --warmup 1 --device cpu"
    assert "checkpoint" in ended_well(host, f"ljperf ablation {options} -- {sizes}")


def test_comm_measures_collectives_of_two_ranks(host):
    said = ended_well(host, "ljperf comm --op all-reduce --sizes 1K..16K --backend gloo --nproc 2")
    assert "busbw" in said


def test_env_says_what_the_image_has(host):
    found = json.loads(ended_well(host, "ljperf env --json"))
    assert host.check_output("python3 -c %s", "from importlib.metadata import version; print(version('torch'))") in str(
        found
    )


def test_checkpoint_optimization_recomputes_the_layers_that_it_was_told(host):
    program = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, vocab_size=64)
model = LlamaForCausalLM(config)
calls = [0]
for layer in model.model.layers:
    layer.register_forward_pre_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))
model.gradient_checkpointing_enable()
model.train()
ids = torch.arange(16).reshape(1, 16)
model(input_ids=ids, labels=ids).loss.backward()
print(calls[0])
"""
    host.check_output(f"cat > {FOLDER}/count.py <<'EOF'\n{program}\nEOF")
    counted = {
        asked: ended_well(host, f"{asked} python3 count.py").split()[-1]
        for asked in ("", "CHECKPOINT_OPTIMIZATION=true CHECKPOINT_OPTIMIZATION_LAYERS=1")
    }
    assert list(counted.values()) == ["8", "5"]  # four layers, and those that are run again: all, or the one
