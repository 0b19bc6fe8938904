"""Names: parsed once, canonical inside; locations compared by whole segments."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import limits
from frazil.errors import BadInput
from frazil.names import Location, TableName, checked_name, checked_namespace, decoded, namespace_in_path, within


@pytest.mark.parametrize("name", ["a", "a.b", "a b", "ä", "\U0001f9ca", "a/b", "%1F", "..", "\u2028", "x" * 255])
def test_every_character_but_control_characters_is_allowed(name):
    assert checked_name(name, "a name") == name
    assert checked_namespace([name, name]) == (name, name)


@pytest.mark.parametrize("name", ["", "a\x00", "a\x1fb", "\n", "\x7f", "x" * 256, "ä" * 128, "\ud800", None, 5, ["a"]])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(BadInput):
        checked_name(name, "a name")
    with pytest.raises(BadInput):
        checked_namespace([name])


@pytest.mark.parametrize("levels", [[], (), "ns", None, {"a": 1}, ["a"] * (limits.namespace_levels_max + 1)])
def test_what_is_no_namespace_is_refused(levels):
    with pytest.raises(BadInput):
        checked_namespace(levels)


@pytest.mark.seed(88, 89)
@pytest.mark.parametrize(
    "raw, separator, levels",
    [
        ("a%1Fb", "%1F", ["a", "b"]),
        ("a%1fb", "%1F", ["a", "b"]),
        ("a\x1fb", "%1F", ["a", "b"]),
        ("a.b", "%1F", ["a.b"]),
        ("a.b", ".", ["a", "b"]),
        ("a%2Eb", ".", ["a.b"]),
        ("a%1Fb.c", ".", ["a", "b", "c"]),
        ("a%2Fb", "%1F", ["a/b"]),
        ("a+b%20c", "%1F", ["a+b c"]),
        ("%251F", "%1F", ["%1F"]),
        ("", "%1F", [""]),
    ],
)
def test_levels_in_a_path_are_split_before_they_are_decoded(raw, separator, levels):
    assert namespace_in_path(raw, separator) == levels


def test_bytes_that_are_no_utf8_are_refused():
    with pytest.raises(BadInput):
        decoded("%ff")


def test_a_table_name_reads_with_dots():
    assert str(TableName(("a", "b"), "t")) == "a.b.t"


# -- locations ---------------------------------------------------------------------------------------------------------


@pytest.mark.seed(18)
@pytest.mark.parametrize(
    "one, other",
    [("file:/x/y", "file:///x/y"), ("s3://b/x/", "s3://b/x"), ("S3://b/x", "s3://b/x"), ("file:///x", "FILE:/x/")],
)
def test_one_place_written_in_two_ways_is_one_place(one, other):
    assert Location(one) == Location(other)
    assert hash(Location(one)) == hash(Location(other))
    assert Location(one).contains(Location(other))
    assert str(Location(one)) == one


@pytest.mark.seed(18)
@pytest.mark.parametrize(
    "place, outside",
    [
        ("s3://b/data", "s3://b/data_foo"),
        ("s3://b/data", "s3://b/dat"),
        ("s3://b/data", "s3://c/data"),
        ("s3://b/data", "s3://b"),
        ("s3://b", "s3://bb/x"),
        ("s3://b/data", "s3a://b/data"),
        ("s3://b/data", "s3://b/DATA"),
        ("file:///data", "file://host/data"),
    ],
)
def test_a_place_contains_whole_segments_only(place, outside):
    assert not Location(place).contains(Location(outside))
    assert not within(Location(outside), [Location(place)])


def test_a_place_contains_itself_and_what_is_in_it():
    place = Location("s3://b/data")
    assert place.contains(Location("s3://b/data/x/y"))
    assert place.relative(Location("s3://b/data/x/y")) == "x/y"
    assert place.relative(place) == ""
    assert within(Location("s3://b/data/x"), [Location("s3://c"), place])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "/x",
        "x/y",
        "s3:",
        "s3:x",
        ":///x",
        "1s3://b/x",
        "s3://b/../x",
        "s3://b/./x",
        "s3://b/%2e%2E/x",
        "s3://b/.%2e/x",
        "s3://b/x?y",
        "s3://b/x#y",
        "s3://b/x\n",
        "s3://b/\x00",
    ],
)
def test_what_is_no_place_is_refused(text):
    with pytest.raises(BadInput):
        Location(text)


@settings(deadline=None)
@given(st.text(), st.text())
def test_nothing_outside_is_ever_inside(root, rest):
    """Whatever is written: a location within a place is that place's text and more segments, or no location at all."""
    place = Location("mem:///lake")
    for text in (f"mem:///{root}/{rest}", f"mem:///lake{rest}", f"mem:///lake/{rest}"):
        try:
            location = Location(text)
        except BadInput:
            continue
        if place.contains(location):
            segments = [segment for segment in text.removeprefix("mem://").split("/") if segment]
            assert segments[0] == "lake"
            assert ".." not in place.relative(location).split("/")
