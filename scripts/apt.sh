#!/usr/bin/env bash
# apt.sh WHY PACKAGE...: install Debian packages, or say in one line what a person has to install.
set -euo pipefail
why=$1 && shift
if ! command -v apt-get >/dev/null; then
    echo "frazil: $why; install what Debian calls: $*" >&2
    exit 1
elif [ "$(id -u)" -ne 0 ]; then
    echo "frazil: $why; as root: apt-get install $*" >&2
    exit 1
fi
echo "frazil: $why; installing $*" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } </dev/null >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    exit 1
fi
