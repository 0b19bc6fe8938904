#!/usr/bin/env bash
# Everything that reads the code without running it. All of it, then the verdict.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=()
run() { # NAME COMMAND...
    local name=$1 && shift
    "$@" || bad+=("$name")
}
layers() { # it has no quiet way of being content
    local said
    said=$(.venv/bin/lint-imports --no-logo 2>&1) || {
        echo "$said"
        return 1
    }
}
run lint .venv/bin/ruff check --quiet
run format .venv/bin/ruff format --check --quiet
run types .venv/bin/mypy --no-error-summary
run layers layers
if [ ${#bad[@]} -gt 0 ]; then
    echo "check: ${bad[*]}: not clean" >&2
    exit 1
fi
echo "check: lint, format, types, layers: clean"
