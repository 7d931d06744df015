#!/bin/sh
# Measure on this machine's GPU within ten minutes; results go to the folder that --out names (default: results/new).
# Uses the installed ljperf, or this checkout's source where none is installed. `gpu/measure.sh --smoke` tries it on a CPU.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
if ! "$python" -c 'import ljperf.gpu' 2>/dev/null; then
    export PYTHONPATH="$here/src${PYTHONPATH:+:$PYTHONPATH}"
fi
case " $* " in
    *" --out"*) ;;
    *) set -- --out "$here/results/new" "$@" ;;
esac
exec "$python" -m ljperf.gpu "$@"
