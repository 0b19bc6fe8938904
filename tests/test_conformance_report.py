"""The conformance runner's verdict: exactly the expected failures, and nothing is hidden."""

from conformance import report

JUNIT = """<testsuite>
<testcase name="testA()" classname="K"/>
<testcase name="testB(boolean)[1]" classname="K"/>
<testcase name="testB(boolean)[2]" classname="K"><failure message="expected: 1&#10;was: 2">at …</failure></testcase>
<testcase name="testC()" classname="K"><skipped><![CDATA[
org.opentest4j.TestAbortedException: assumption was not met due to:
[Only valid for nested namespaces]
at …]]></skipped></testcase>
<testcase name="testD()" classname="K"><error message="boom"/></testcase>
</testsuite>"""


def cases(tmp_path):
    (tmp_path / "TEST-jupiter.xml").write_text(JUNIT)
    return report.read(tmp_path)


def test_every_case_is_read_with_its_reason(tmp_path):
    assert cases(tmp_path) == [
        ("testA()", "passed", ""),
        ("testB(boolean)[1]", "passed", ""),
        ("testB(boolean)[2]", "failed", "expected: 1"),
        ("testC()", "skipped", "[Only valid for nested namespaces]"),
        ("testD()", "failed", "boom"),
    ]


def test_only_exactly_the_expected_failures_are_no_surprise(tmp_path):
    found = cases(tmp_path)
    assert report.surprises(found, {"testB", "testD"}) == []
    assert report.surprises(found, {"testB"}) == ["testD failed"]
    assert report.surprises(found, {"testA", "testB", "testD"}) == ["testA was expected to fail and did not"]


def test_a_kit_that_ran_nothing_is_a_surprise():
    assert report.surprises([], set()) == ["nothing passed"]


def test_the_summary_names_every_case_and_closes_with_the_counts(tmp_path):
    lines = report.summary(cases(tmp_path), set()).splitlines()
    assert lines[2] == "skipped  testC(): [Only valid for nested namespaces]"
    assert lines[-1] == "2 passed, 2 failed, 1 skipped"
