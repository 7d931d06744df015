# Sourced by the scripts: messages, root, and processes that we started and may therefore stop.
# shellcheck shell=bash

shopt -s inherit_errexit # `set -e` holds inside $(...), too

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/lj-image

# Messages go to stderr: stdout belongs to the result (an address, a path).
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    local message=$1
    shift
    say "$message"
    if (($#)); then printf '  %s\n' "$@" >&2; fi
    exit 1
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root to run: $*" "run it as root, or install sudo"
    fi
}

# is_running PIDFILE NAME: the process in PIDFILE lives and still is a NAME (process ids are reused, names cut at 15).
is_running() {
    local pid
    [[ -r $1 ]] && pid=$(<"$1") && [[ -n $pid ]] || return 1
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "${2:0:15}" ]]
}

# stop_process PIDFILE NAME SECONDS: end it gently, then firmly; remove the file.
stop_process() {
    local pidfile=$1 name=$2 patience=$3 pid i
    if is_running "$pidfile" "$name"; then
        pid=$(<"$pidfile")
        say "stopping $name (process $pid)"
        as_root kill -TERM "$pid"
        for ((i = 0; i < patience * 5; i++)); do
            is_running "$pidfile" "$name" || break
            sleep 0.2
        done
        if is_running "$pidfile" "$name"; then as_root kill -KILL "$pid"; fi
    fi
    rm -f "$pidfile"
}

# engine_answers HOST: an engine answers at unix:// or tcp:// HOST. Python, because curl may not be there.
engine_answers() {
    python3 - "$1" <<'PYTHON'
import http.client, socket, sys

scheme, _, address = sys.argv[1].partition("://")
connection = http.client.HTTPConnection("localhost", timeout=5)
try:
    if scheme == "unix":
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5)
        connection.sock.connect(address)
    else:
        host, _, port = address.partition(":")
        connection.sock = socket.create_connection((host, int(port or 2375)), 5)
    connection.request("GET", "/_ping")
    sys.exit(0 if connection.getresponse().status == 200 else 1)
except OSError:
    sys.exit(1)
PYTHON
}

# await_engine HOST PIDFILE LOG: until the engine answers; shows the log's end when it died or never will.
await_engine() {
    local host=$1 pidfile=$2 log=$3 i
    for ((i = 0; i < 240; i++)); do
        if engine_answers "$host"; then return 0; fi
        if ((i > 20)) && ! is_running "$pidfile" dockerd; then break; fi
        sleep 0.25
    done
    tail -n 15 "$log" >&2 || true
    die "the engine does not answer at $host" "its log: $log"
}

# name_bridge KEY: set $bridge and $subnet, the same for the same key. 10.100.0.0 and up: docker0 keeps to 172.16.0.0/12.
name_bridge() {
    local key
    key=$(printf %s "$1" | sha256sum | cut -c1-8)
    bridge=lj-$key
    subnet=10.$((16#${key:0:2} % 100 + 100)).$((16#${key:2:2})).1/24
}

# interface_number NAME: its index, in this network namespace; /sys may show another one's. Fails when there is none.
interface_number() { python3 -c 'import socket, sys; print(socket.if_nametoindex(sys.argv[1]))' "$1" 2>/dev/null; }

# Below a plain chroot, `/` is no mount point: its propagation cannot be changed, and no container starts on it.
root_is_mounted() { awk '$5 == "/" {found = 1} END {exit !found}' /proc/self/mountinfo; }

# in_own_mounts COMMAND...: run it, as root, in a mount namespace of its own.
in_own_mounts() {
    local propagation=private
    root_is_mounted || propagation=unchanged
    exec unshare --mount --propagation "$propagation" "$@"
}

# make_stage FOLDER: an empty FOLDER below which mounts are seen in this mount namespace alone. At worst, below a plain
# chroot, an empty tmpfs shows through: never a second way to other files, which `rm -rf` would take.
make_stage() {
    mkdir -p "$1"
    mount -t tmpfs lj-image-stage "$1"
    mount --make-private "$1"
}
