"""The token file: who may read it, what it may hold, and what it takes to be known."""

from pathlib import Path

import pytest

from frazil.access.authn import Nobody, Tokens, read_tokens
from frazil.errors import BadInput, Unauthenticated

ADA, BOB = "a" * 32, "b" * 32


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"

    def write(text, mode=0o600):
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return write


def test_a_token_tells_its_principal(token_file):
    tokens = Tokens(token_file(f"# people\nada {ADA}\n\nbob {BOB}  # on leave\n"))
    assert tokens.identify(f"Bearer {ADA}".encode(), "spark").name == "ada"
    assert tokens.identify(f"bearer {BOB}".encode(), None).name == "bob"


def test_a_sign_inside_a_token_is_part_of_it(token_file):
    tokens = Tokens(token_file(f"ada {ADA}#rest\n"))
    assert tokens.identify(f"Bearer {ADA}#rest".encode(), None).name == "ada"
    with pytest.raises(Unauthenticated):
        tokens.identify(f"Bearer {ADA}".encode(), None)


@pytest.mark.parametrize(
    "shown",
    [None, b"", b"Bearer", b"Bearer ", b"Bearer " + b"c" * 32, b"Basic " + b"a" * 32, b"a" * 32, b"Bearer \xff"],
)
def test_anything_else_is_unknown(token_file, shown):
    tokens = Tokens(token_file(f"ada {ADA}\n"))
    with pytest.raises(Unauthenticated) as refused:
        tokens.identify(shown, None)
    assert ADA not in refused.value.message


def test_one_principal_may_have_several_tokens(token_file):
    tokens = Tokens(token_file(f"ada {ADA}\nada {BOB}\n"))
    assert {tokens.identify(f"Bearer {token}".encode(), None).name for token in (ADA, BOB)} == {"ada"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_file_that_others_can_read_is_refused_with_what_to_do(token_file, mode):
    path = token_file(f"ada {ADA}\n", mode)
    with pytest.raises(BadInput, match=f"chmod 600 {path}"):
        Tokens(path)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "holds no token"),
        ("# nobody\n", "holds no token"),
        ("ada\n", "line 1"),
        (f"ada {ADA} more\n", "line 1"),
        (f"ada {ADA}\nbob short\n", "line 2: a token has at least"),
        (f"ada {ADA}\nbob {ADA}\n", "line 2: this token is another principal's"),
    ],
)
def test_a_malformed_file_is_refused_by_line_without_the_token(token_file, text, said):
    with pytest.raises(BadInput, match=said) as refused:
        read_tokens(token_file(text))
    assert ADA not in refused.value.message


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        Tokens(str(tmp_path / "none"))


def test_a_changed_file_is_read_again(token_file):
    tokens = Tokens(token_file(f"ada {ADA}\n"))
    token_file(f"bob {BOB}\n")
    tokens.refresh()
    assert tokens.identify(f"Bearer {BOB}".encode(), None).name == "bob"
    with pytest.raises(Unauthenticated):
        tokens.identify(f"Bearer {ADA}".encode(), None)


@pytest.mark.parametrize("spoil", ["mode", "content", "gone"])
def test_a_change_that_cannot_be_used_leaves_the_tokens_as_they_were(token_file, spoil, caplog):
    path = token_file(f"ada {ADA}\n")
    tokens = Tokens(path)
    match spoil:
        case "mode":
            token_file(f"bob {BOB}\n", 0o644)
        case "content":
            token_file("bob\n")
        case "gone":
            Path(path).unlink()
    for _ in range(3):
        tokens.refresh()
    assert tokens.identify(f"Bearer {ADA}".encode(), None).name == "ada"
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert BOB not in caplog.text
    token_file(f"bob {BOB}\n")
    tokens.refresh()
    assert tokens.identify(f"Bearer {BOB}".encode(), None).name == "bob"


def test_without_a_file_everybody_is_nobody():
    assert Nobody().identify(b"Bearer x", "spark").name is None
