#!/usr/bin/env bash
# Pin every dependency with its hashes, for every platform and Python the project supports. UPGRADE=1 takes newer versions.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() { # OUTPUT OPTIONS...
    # Without headers, indexes and links: a lock names what is installed, not where this machine fetched it.
    local out=requirements/$1 && shift
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-header --no-emit-index-url --no-emit-find-links ${UPGRADE:+--upgrade} "$@" --output-file "$out"
    if grep -n '://' "$out"; then
        echo "lock: $out names an address" >&2
        exit 1
    fi
}

export UV_PYTHON_DOWNLOADS=never
compile runtime.txt pyproject.toml
# The rest is held to what the server runs on, so that a development environment tests exactly that.
compile build.txt --group build --constraints requirements/runtime.txt
compile servers.txt --group servers
compile dev.txt pyproject.toml --extra s3 --extra spark --group dev --group build --constraints requirements/runtime.txt \
    --constraints requirements/build.txt
