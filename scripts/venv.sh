#!/usr/bin/env bash
# venv.sh STAMP LOCK...: bring .venv to these locks, making it where there is none; touch STAMP when it stands.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=$1 && shift

python_of() { # the first Python that is new enough
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "frazil: needs Python 3.11 or newer (PYTHON=… names one)" >&2
    return 1
}

if [ ! -x .venv/bin/pip ]; then
    python=$(python_of)
    # Debian's Python comes without the module that makes environments.
    "$python" -c 'import ensurepip' 2>/dev/null || scripts/apt.sh "no venv module" python3-venv
    "$python" -m venv .venv
fi
echo "frazil: installing into .venv: ${*##*/}" >&2
locks=()
for lock in "$@"; do locks+=(--requirement "$lock"); done
pip=(.venv/bin/pip install --quiet --disable-pip-version-check --no-input)
# Sources (PySpark's is one) are built with the locked tools in .venv, not with what pip would fetch for the purpose.
"${pip[@]}" --require-hashes --no-build-isolation "${locks[@]}"
"${pip[@]}" --no-deps --no-build-isolation --editable .
touch "$stamp"
