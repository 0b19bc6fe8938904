"""Spark's Java is found as Spark's launcher finds it, and one that cannot run Spark is refused in one line."""

from pathlib import Path

import pytest

from frazil.pipeline.java import PipelineError, find_java, java_version


def a_java(folder: Path, says: str) -> Path:
    """A fake installation: `bin/java`, which prints this to stderr as the real one does."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', "17.0.15"),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', "21"),
        ('java version "1.8.0_392"', "1.8.0_392"),
        ('openjdk version "25-ea" 2025-09-16', "25-ea"),
        ("command not found", None),
    ],
)
def test_the_version_is_read_from_what_java_says(said, version):
    assert java_version(said) == version


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8"])
def test_a_java_that_spark_runs_on_is_taken(tmp_path, version):
    home = a_java(tmp_path / "jdk", f'openjdk version "{version}" 2025-04-15')
    found = find_java({"JAVA_HOME": str(home)})
    assert found == (home / "bin" / "java", version, int(version[:2]))


def test_java_home_wins_over_the_path(tmp_path):
    home = a_java(tmp_path / "home", 'openjdk version "21.0.1"')
    other = a_java(tmp_path / "other", 'openjdk version "17.0.1"')
    assert find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin:/bin"}).major == 21
    assert find_java({"PATH": f"{other}/bin:/bin"}).major == 17


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ('java version "1.8.0_392"', "too old"),
        ('openjdk version "11.0.2"', "too old"),
        ('openjdk version "24.0.1"', "too new"),
        ('openjdk version "25-ea"', "too new"),
        ("I am no Java", "is no Java"),
    ],
)
def test_a_java_that_spark_cannot_run_on_is_refused_in_one_line(tmp_path, said, refusal):
    home = a_java(tmp_path / "jdk", said)
    with pytest.raises(PipelineError, match=refusal) as refused:
        find_java({"JAVA_HOME": str(home)})
    assert "\n" not in str(refused.value)
    assert str(home) in str(refused.value)


def test_no_java_at_all_names_the_package_to_install(tmp_path):
    with pytest.raises(PipelineError, match="openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path):
    with pytest.raises(PipelineError, match="no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_does_not_run_is_named(tmp_path):
    home = a_java(tmp_path / "jdk", "")
    (home / "bin" / "java").write_text("not a program")
    with pytest.raises(PipelineError, match="does not run"):
        find_java({"JAVA_HOME": str(home)})
