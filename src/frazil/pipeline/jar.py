"""Iceberg's runtime for Spark: one jar, found in this order: as configured, in our cache, by Maven, by Spark itself.

No address is named here: Maven and Spark know where artifacts come from, and the machine's own settings say otherwise.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from frazil.pipeline.java import PipelineError

COORDINATE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
FILE_NAME = "iceberg-spark-runtime-4.1_2.13-1.12.0.jar"
SHA256 = "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"

MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
#: 48 MB and Maven's plugin, at the pace of a slow line.
MAVEN_S = 600


def find_jar(configured: str | None, cache: Path) -> Path | None:
    """The jar as a file, or None: then Spark has to fetch `COORDINATE`, and `keep` saves the next start that time."""
    if configured:
        given = Path(configured)
        if not is_iceberg(given):
            raise PipelineError(f"{given} is not {FILE_NAME}: no such file, or its SHA-256 is not the released one's")
        return given
    kept = cache / FILE_NAME
    if is_iceberg(kept):
        return kept
    return _by_maven(cache)


def is_iceberg(jar: Path) -> bool:
    """Whether this file is, byte for byte, the released jar."""
    try:
        with jar.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except OSError:
        return False


def keep(jar: Path, cache: Path) -> Path | None:
    """Copy a jar that was fetched into our cache, if it is the released one."""
    if not is_iceberg(jar):
        return None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, prefix=".", delete=False) as copy, jar.open("rb") as source:
            shutil.copyfileobj(source, copy)
        # Renamed when complete: sessions that start side by side see all of the jar or none of it.
        Path(copy.name).replace(cache / FILE_NAME)
    except OSError:
        return None  # a cache that cannot be written costs time, nothing else
    return cache / FILE_NAME


def _by_maven(cache: Path) -> Path | None:
    maven = shutil.which("mvn")
    if maven is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        options = [f"-Dartifact={COORDINATE}", f"-DoutputDirectory={scratch}", "-Dmdep.useBaseVersion=true"]
        command = [maven, "--quiet", "--batch-mode", MAVEN_COPY, *options]
        try:
            subprocess.run(command, cwd=scratch, capture_output=True, timeout=MAVEN_S, check=True)
        except (OSError, subprocess.SubprocessError):
            return None  # Spark's own way is still there, and its failure is the one to tell
        return keep(Path(scratch, FILE_NAME), cache)
