"""In place of `ljperf`: says how fast its options train, from a table in the environment, within milliseconds.

STAND_IN_SPEEDS is JSON: {"": 100, "--compile": 120, …}: the speed of the longest key that the options contain.
STAND_IN_CALLS names a file that gets a line for each call. STAND_IN_FAIL: options that fail. STAND_IN_HANG: hang.
"""

import json
import os
import sys
import time
from pathlib import Path

said = " ".join(sys.argv[1:])
calls = Path(os.environ["STAND_IN_CALLS"])
with calls.open("a") as out:
    out.write(said + " LD_LIBRARY_PATH=" + os.environ.get("LD_LIBRARY_PATH", "") + "\n")
count = len(calls.read_text().splitlines())

if os.environ.get("STAND_IN_FAIL", "\0") in said:
    print("RuntimeError: out of memory")
    sys.exit(1)
if os.environ.get("STAND_IN_HANG", "\0") in said:
    print("waiting for a rank", flush=True)
    time.sleep(60)

speeds = json.loads(os.environ["STAND_IN_SPEEDS"])
speed = speeds[max((key for key in speeds if key in said), key=len)] + count * 0.01
result = {"complete": "--partial" not in said, "tokens_per_second": speed, "arguments": sys.argv[1:]}
Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(result))
