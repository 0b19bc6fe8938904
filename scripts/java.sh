#!/usr/bin/env bash
# Print a JAVA_HOME with Java 17 to 23, installing Debian's when there is none. What Spark and Iceberg's own tools run on.
set -euo pipefail
here=$(dirname "$0")

fits() { # whether this home's Java is one that Spark runs on
    [ -x "$1/bin/java" ] || return 1
    local major
    major=$("$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ] && [ "$major" -le 23 ]
}

find_home() {
    local java home
    java=$(command -v java 2>/dev/null || true)
    [ -z "$java" ] || java=$(dirname "$(dirname "$(readlink -f "$java")")")
    for home in "${JAVA_HOME:-}" "$java" /usr/lib/jvm/*; do
        if [ -n "$home" ] && fits "$home"; then
            echo "$home"
            return
        fi
    done
    return 1
}

find_home || {
    "$here/apt.sh" "no Java 17 to 23" openjdk-17-jre-headless
    find_home
}
