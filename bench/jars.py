"""The Java side of conformance and benchmark: a JVM, and Iceberg's jars by Maven, each installed when it is missing."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parent.parent
POM = PROJECT / "conformance" / "pom.xml"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def java_home() -> Path:
    said = subprocess.run([PROJECT / "scripts" / "java.sh"], check=True, capture_output=True, text=True)
    return Path(said.stdout.strip())


def class_path(home: Path) -> str:
    """Every jar of the POM, copied once: a changed POM is another directory."""
    jars = PROJECT / ".cache" / "jars" / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    if not jars.is_dir():
        if shutil.which("mvn") is None:
            subprocess.run([PROJECT / "scripts" / "apt.sh", "no Maven", "maven"], check=True)
        print("frazil: fetching Iceberg's kit and reference server by Maven", flush=True)
        fetched = jars.with_suffix(f".{os.getpid()}")
        command = [
            "mvn",
            "--quiet",
            "--batch-mode",
            "-Dstyle.color=never",
            "--file",
            str(POM),
            COPY,
            f"-DoutputDirectory={fetched}",
        ]
        environ = os.environ | {"JAVA_HOME": str(home)}
        done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit("Maven: " + "\n".join(done.stdout.splitlines()[-5:]))
        try:
            fetched.rename(jars)  # whole, or not there
        except OSError:
            shutil.rmtree(fetched)  # another run was quicker
    return ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
