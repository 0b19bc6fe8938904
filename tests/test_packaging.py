"""What is in the wheel, and what installing it brings along."""

import email.parser
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
HEAVY = ("pyspark", "pyarrow", "obstore", "pyiceberg", "duckdb")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


def test_the_wheel_holds_the_package_and_its_licence_alone(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert "frazil" in tops
    assert all(top == "frazil" or top.endswith(".dist-info") for top in tops)
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_bare_wheel_requires_nothing_heavy(wheel):
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.parser.BytesParser().parsebytes(wheel.read(name))
    bare = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert bare
    assert not [each for each in bare if each.lower().startswith(HEAVY)]


@pytest.mark.parametrize("lock", ["runtime", "build", "dev", "servers"])
def test_every_locked_package_has_hashes_and_no_address(lock):
    text = (PROJECT / "requirements" / f"{lock}.txt").read_text()
    assert "://" not in text
    pins = [block for block in text.replace("\\\n", " ").splitlines() if block and not block.lstrip().startswith("#")]
    assert pins
    assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)


def test_the_runtime_lock_holds_what_the_wheel_requires():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    locked = (PROJECT / "requirements" / "runtime.txt").read_text()
    names = [entry.split(">")[0].split("=")[0].strip() for entry in project["dependencies"]]
    assert not [name for name in names if f"\n{name}==" not in f"\n{locked}"]
    assert not [name for name in HEAVY if f"\n{name}==" in locked]
