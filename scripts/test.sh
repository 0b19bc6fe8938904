#!/usr/bin/env bash
# Everything that must hold before a change lands. Arguments go to pytest; its closing line is the last one printed.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .cache

# The S3 server that the store is tested against takes minutes to build, once; meanwhile the rest is made ready.
.venv/bin/python -m tests.servers build >.cache/servers.log 2>&1 &
build=$!
trap 'kill "$build" 2>/dev/null' EXIT

scripts/check.sh
JAVA_HOME=$(scripts/java.sh)
export JAVA_HOME

wait "$build" || {
    tail -n 20 .cache/servers.log >&2
    echo "test: the S3 server could not be built" >&2
    exit 1
}

# Two processes for two cores. Tests of one xdist_group share a process: one Spark for all, not one each.
exec .venv/bin/python -m pytest --numprocesses 2 --dist loadgroup "$@"
