"""Which Java Spark will run on, and whether Spark can run on it.

Needs the standard library alone: `frazil doctor` asks this where PySpark is not installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
#: Hadoop, which Spark carries, calls a method that Java 24 took away.
NEWEST = 23
#: Oracle's and Debian's Java answer in a tenth of a second; a minute is a machine in trouble, not a slow Java.
ANSWER_S = 60


class PipelineError(Exception):
    """Spark cannot be started here. The message is one line and says what to do."""


class Java(NamedTuple):
    path: Path
    version: str
    major: int


def find_java(environ: Mapping[str, str]) -> Java:
    """The Java that Spark's own launcher takes: JAVA_HOME's, else PATH's. `PipelineError` if Spark cannot use it."""
    found = java_at(_command(environ))
    if found.major < OLDEST:
        raise PipelineError(f"{_named(found)} is too old for Spark, which needs Java {OLDEST} or 21; {_ADVICE}")
    if found.major > NEWEST:
        raise PipelineError(f"{_named(found)} is too new for Spark, which runs on Java {OLDEST} or 21; {_ADVICE}")
    return found


def java_at(path: Path) -> Java:
    """What this `java` says it is."""
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(f"{path} does not run: {error}") from error
    version = java_version(said.stderr + said.stdout)
    if version is None:
        raise PipelineError(f"{path} is no Java: `{path} -version` does not say which")
    return Java(path, version, _major(version))


def java_version(said: str) -> str | None:
    """The version in the output of `java -version`, whatever else the JVM prints before it."""
    match = re.search(r'version "(\d[^"]*)"', said)
    return match.group(1) if match else None


def _major(version: str) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]  # Java 8 calls itself 1.8


def _command(environ: Mapping[str, str]) -> Path:
    if home := environ.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        if not java.is_file():
            raise PipelineError(f"JAVA_HOME is {home}, which has no bin/java; {_ADVICE}")
        return java
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path is None:
        raise PipelineError(f"no Java found, and Spark needs Java {OLDEST} or 21; {_ADVICE}")
    return Path(on_path)


def _named(java: Java) -> str:
    return f"Java {java.version} ({java.path})"


_ADVICE = "install one (Debian: openjdk-17-jre-headless) and let JAVA_HOME or PATH name it"
