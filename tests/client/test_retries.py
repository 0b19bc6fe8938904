"""What the client repeats, with which key, for how long, and what it says when it stops."""

import pytest

from frazil.client.failures import ConnectionLost, WindowExpired
from frazil.errors import CommitStateUnknown, Conflict, FrazilError, Internal, NoSuchTable, ReplayFailed, Unavailable
from tests.client.scripted import BROKEN, answer, closed, error

OK = answer(200, {"done": True})
BUSY = error(503, "ServiceUnavailableException", "busy")


def change(client):
    return client.change("POST", "/x", {"name": "a"})


# -- keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(248, 250, 279)
@pytest.mark.parametrize("advertised", ["PT1H", None])
def test_a_mutation_has_a_key_exactly_when_the_server_advertises_a_lifetime(client, scripted, advertised):
    scripted.then(OK)
    change(client)
    assert [key is not None for key in scripted.keys] == [advertised is not None]


@pytest.mark.seed(91)
def test_every_operation_has_a_key_of_its_own(client, scripted):
    scripted.then(OK, OK)
    change(client)
    change(client)
    assert len(set(scripted.keys)) == 2


def test_a_read_has_no_key(client, scripted):
    scripted.then(OK)
    client.get("/x")
    assert scripted.keys == [None]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_connection_is_followed_by_the_same_request_with_the_same_key(client, scripted, broken):
    scripted.then(broken, broken, OK)
    assert change(client) == {"done": True}
    assert len(scripted.seen) == 3
    assert len(set(scripted.keys)) == 1
    assert len({(seen.method, seen.target, seen.body) for seen in scripted.seen}) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("body", [{"error": {"message": "m", "type": "T", "code": 0}}, "<html>a proxy's page</html>"])
def test_a_passing_failure_is_followed_by_the_same_key(client, scripted, status, body):
    scripted.then(answer(status, body), OK)
    assert change(client) == {"done": True}
    assert len(scripted.seen) == 2
    assert len(set(scripted.keys)) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409, 422])
def test_an_answer_that_is_an_outcome_is_not_repeated(client, scripted, status):
    scripted.then(error(status, "SomeException"))
    with pytest.raises(FrazilError) as raised:
        change(client)
    assert raised.value.status == status
    assert len(scripted.seen) == 1


def test_a_result_that_cannot_be_replayed_is_not_asked_for_again(client, scripted):
    scripted.then(error(500, "InternalServerError", subtype="idempotency_replay_failed"))
    with pytest.raises(CommitStateUnknown):
        change(client)
    assert len(scripted.seen) == 1


# -- without the advertisement -------------------------------------------------------------------------------------


@pytest.mark.seed(250, 279)
@pytest.mark.parametrize("advertised", [None, "", "30mPT30M", "PT", "P1M", "PT0S", 3600])
@pytest.mark.parametrize("failing", [*BROKEN.values(), BUSY, answer(502, "")], ids=[*BROKEN, "503", "502"])
def test_without_a_valid_lifetime_no_mutation_is_ever_repeated(client, scripted, advertised, failing):
    scripted.then(failing, OK)
    with pytest.raises(FrazilError, match="advertises no idempotency keys"):
        change(client)
    assert len(scripted.seen) == 1
    assert scripted.keys == [None]


@pytest.mark.parametrize("advertised", [None])
def test_without_a_lifetime_a_broken_connection_leaves_it_open_what_happened(client, scripted):
    scripted.then(closed)
    with pytest.raises(CommitStateUnknown, match="whether it was applied is not known"):
        change(client)


@pytest.mark.parametrize("advertised", [None])
def test_without_a_lifetime_a_refusal_by_the_server_itself_is_told_as_it_is(client, scripted):
    scripted.then(BUSY)
    with pytest.raises(Unavailable):
        change(client)


def test_a_read_is_repeated_all_the_same(client, scripted):
    scripted.then(closed, BUSY, OK)
    assert client.get("/x") == {"done": True}


def test_a_fault_of_the_server_in_a_read_is_told_at_once(client, scripted):
    scripted.then(error(500, "InternalServerError", "the metadata is broken"))
    with pytest.raises(Internal, match="the metadata is broken"):
        client.get("/x")
    assert len(scripted.seen) == 1


# -- waiting -------------------------------------------------------------------------------------------------------


def test_waits_grow_and_stay_below_their_bound(client, scripted, time):
    scripted.then(*[BUSY] * 8, OK)
    change(client)
    assert time.slept == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


@pytest.mark.seed(269)
@pytest.mark.parametrize("asked", ["7", "Fri, 15 Jan 2027 08:00:07 GMT"])
def test_the_server_is_not_asked_again_before_it_says(client, scripted, time, asked):
    scripted.then(error(503, "ServiceUnavailableException", Retry_After=asked), OK)
    change(client)
    assert 7 <= time.slept[0] <= 7.1


def test_a_server_that_asks_for_more_time_than_people_have_is_not_waited_for(client, scripted, time):
    scripted.then(error(429, "TooManyRequestsException", "later", Retry_After="1800"))
    with pytest.raises(FrazilError, match=r"later \(given up .*next try would be in 30 min\)"):
        change(client)
    assert time.slept == []


def test_patience_ends_and_what_is_known_is_said(client, scripted, time):
    scripted.then(*[BUSY] * 100)
    with pytest.raises(Unavailable, match=r"busy \(given up after 5\d(\.\d)? s, tried 1\d times\)"):
        change(client)
    assert sum(time.slept) <= 60


def test_one_unclear_answer_among_refusals_keeps_the_outcome_unknown(client, scripted):
    scripted.then(BUSY, closed, *[BUSY] * 100)
    with pytest.raises(CommitStateUnknown, match="whether it was applied is not known"):
        change(client)


def test_every_repeat_is_told_with_its_reason_and_its_wait(client, scripted, again):
    scripted.then(closed, BUSY, OK)
    change(client)
    assert [type(each.failure) for each in again] == [ConnectionLost, Unavailable]
    assert [each.wait_ms for each in again] == [200, 400]


# -- the lifetime --------------------------------------------------------------------------------------------------


@pytest.mark.seed(279, 280)
@pytest.mark.parametrize("advertised", ["PT2S"])
def test_after_the_lifetime_no_request_is_sent_and_the_failure_says_so(client, scripted, time):
    scripted.then(*[closed] * 100)
    started = time.ms
    with pytest.raises(WindowExpired, match="good for 2 s, so it is not repeated any more") as raised:
        change(client)
    assert raised.value.type == "IdempotencyWindowExpired"
    assert time.ms - started < 2_000
    assert len(scripted.seen) == 4


@pytest.mark.seed(280)
@pytest.mark.parametrize("advertised", ["PT2S"])
def test_a_machine_that_overslept_the_lifetime_sends_nothing_more(client, scripted, time):
    scripted.then(closed, OK)
    time.oversleep_ms = 60_000
    with pytest.raises(WindowExpired):
        change(client)
    assert len(scripted.seen) == 1


@pytest.mark.seed(280)
@pytest.mark.parametrize("advertised", ["PT2S"])
def test_after_the_lifetime_refusals_known_not_applied_are_told_as_such(client, scripted):
    scripted.then(*[BUSY] * 100)
    with pytest.raises(Unavailable, match=r"busy .*not repeated any more"):
        change(client)


# -- outcomes after an unclear try ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status, raised", [(409, Conflict), (404, NoSuchTable)])
def test_the_answer_to_a_repeat_is_the_outcome(client, scripted, status, raised):
    scripted.then(closed, error(status, raised.type))
    with pytest.raises(raised):
        change(client)


@pytest.mark.parametrize(
    "second",
    [
        error(401, "NotAuthorizedException"),
        error(403, "ForbiddenException"),
        error(408, "RequestTimeoutException"),
        answer(404, "<html>a proxy's page</html>"),
        answer(301, "", Location="http://127.0.0.1:1/"),
    ],
    ids=["401", "403", "408", "a proxy's 404", "a redirect"],
)
def test_a_repeat_refused_before_its_key_was_looked_up_says_nothing_about_the_first_try(client, scripted, second):
    scripted.then(closed, second)
    with pytest.raises(CommitStateUnknown):
        change(client)


def test_a_lost_replay_says_that_the_outcome_is_unknown_in_a_read_too(client, scripted):
    scripted.then(error(500, "InternalServerError", subtype="idempotency_replay_failed"))
    with pytest.raises(ReplayFailed):
        client.get("/x")


def test_the_configuration_is_asked_for_once(client, scripted):
    scripted.then(OK, OK, OK)
    for _ in range(3):
        change(client)
    assert scripted.configs == 1
