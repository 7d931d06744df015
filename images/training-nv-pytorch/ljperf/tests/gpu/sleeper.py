"""In place of `ljperf benchmark`: takes as long as `--steps` says in units (a tenth of a second), and notes when.

SLEEPER_LOG gets a line when it begins and one when it ends. `--sequence 13` fails as a GPU without memory does.
"""

import json
import os
import sys
import time
from pathlib import Path


def note(what: str) -> None:
    with Path(os.environ["SLEEPER_LOG"]).open("a") as out:
        out.write(what + "\n")


if sys.argv[1] == "calibrate":
    (Path(sys.argv[3]) / "a-device.yaml").write_text("reserved_ratio: 1.05\n")
    print("reserved/allocated 1.05")
    sys.exit(0)
words = dict(zip(sys.argv, sys.argv[1:], strict=False))
name = Path(words["--json"]).stem
note(f"+{name}")
time.sleep(int(words["--steps"]) * float(os.environ.get("SLEEPER_UNIT", "0.1")))
note(f"-{name}")
if words.get("--sequence") == "13":
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    print("the end")
    sys.exit(1)
result = {
    "complete": True,
    "tokens_per_second": 50.0,
    "memory": {"allocated": 4},
    "model": "tiny",
    "setup": {"framework": "ddp", "sequence": 32, "zero_stage": 0},
}
Path(words["--json"]).write_text(json.dumps(result))
