"""The settings: defaults, where a value comes from, what is refused and how that is said."""

import pytest

from frazil import config
from frazil.config import Address, load
from frazil.errors import BadInput
from frazil.telemetry import Secret


def test_the_defaults_suit_a_laptop():
    found = load(None, {}, {})
    assert (found.root, found.listen, found.catalog) == ("./lakehouse", Address("127.0.0.1", 8181), "lake")
    assert (found.sync, found.share_credentials, found.token_file) == (True, False, None)
    assert set(found.origins.values()) == {"default"}


def test_later_wins_and_each_value_knows_where_it_came_from(tmp_path):
    toml = tmp_path / "frazil.toml"
    toml.write_text('root = "/toml"\ncatalog = "toml"\nworkers = 3\n[log]\nformat = "json"\n[s3]\nregion = "toml-1"\n')
    found = load(toml, {"FRAZIL_CATALOG": "env", "FRAZIL_WORKERS": "4", "PATH": "x"}, {"workers": 5, "listen": None})
    assert (found.root, found.catalog, found.workers) == ("/toml", "env", 5)
    assert (found.log.format, found.s3.region) == ("json", "toml-1")
    assert [found.origins[key] for key in ("root", "catalog", "workers", "listen")] == [
        str(toml),
        "FRAZIL_CATALOG",
        "--workers",
        "default",
    ]


@pytest.mark.parametrize(
    "text, address",
    [
        ("localhost:80", Address("localhost", 80)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:8181", Address("::1", 8181)),
    ],
)
def test_an_address_is_host_and_port(text, address):
    found = load(None, {}, {"listen": text}).listen
    assert found == address
    assert str(found) == text
    assert found.loopback


@pytest.mark.parametrize("text", ["8181", "localhost", "localhost:", "localhost:x", ":8181", "::1:8181", "a:99999", ""])
def test_anything_else_is_no_address(text):
    with pytest.raises(BadInput, match=r"--listen: listen must be HOST:PORT"):
        load(None, {}, {"listen": text})


def test_locations_are_listed_with_commas_or_as_a_list(tmp_path):
    toml = tmp_path / "frazil.toml"
    toml.write_text('allowed_locations = ["file:/a", "s3://b/c"]')
    from_environment = load(None, {"FRAZIL_ALLOWED_LOCATIONS": " file:/a, s3://b/c,"}, {})
    assert load(toml, {}, {}).allowed_locations == from_environment.allowed_locations == ("file:/a", "s3://b/c")


@pytest.mark.parametrize(
    "flags, said",
    [
        ({"nonsense": "1"}, "there is no setting nonsense"),
        ({"workers": "0"}, "--workers: workers must be a whole number from 1 to 256, not '0'"),
        ({"workers": "many"}, "whole number"),
        ({"workers": True}, "whole number"),
        ({"sync": "yes"}, "--sync: sync must be true or false, not 'yes'"),
        ({"log.format": "xml"}, "--log-format: log.format must be json or readable, not 'xml'"),
        ({"catalog": "a/b"}, "catalog must be"),
        ({"catalog": ""}, "catalog must be"),
        ({"namespace_separator": "/"}, "namespace_separator must be percent-encoded"),
        ({"namespace_separator": "%2E"}, "of characters that clients always encode"),
        ({"allowed_locations": "tmp"}, "allowed_locations must be a list of absolute URIs"),
        ({"root": ""}, "root must be a non-empty string"),
    ],
)
def test_what_a_setting_cannot_be_is_said_in_one_line(flags, said):
    with pytest.raises(BadInput) as refused:
        load(None, {}, flags)
    assert said in refused.value.message
    assert "\n" not in refused.value.message


def test_an_unknown_variable_is_refused_unless_it_is_somebody_elses():
    with pytest.raises(BadInput, match="FRAZIL_TOKENFILE: there is no such setting"):
        load(None, {"FRAZIL_TOKENFILE": "x"}, {})
    load(None, dict.fromkeys(config.ELSEWHERE, "x"), {})


@pytest.mark.parametrize(
    "text, said",
    [
        ("nonsense = 1", "there is no setting nonsense"),
        ("[log]\nnonsense = 1", "there is no setting log.nonsense"),
        ("[nonsense]\na = 1", "there is no setting nonsense"),
        ("not toml", "cannot be read"),
        ("workers = 1.5", "whole number"),
        ('[s3]\nsecret_access_key = "plain"', "must be file:PATH"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_name(tmp_path, text, said):
    toml = tmp_path / "frazil.toml"
    toml.write_text(text)
    with pytest.raises(BadInput) as refused:
        load(toml, {}, {})
    assert said in refused.value.message
    assert str(toml) in refused.value.message


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        load(tmp_path / "none.toml", {}, {})


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_a_secret_comes_from_a_file_or_the_environment_and_is_never_shown(tmp_path):
    kept = tmp_path / "secret"
    kept.write_text("from-a-file\n")
    toml = tmp_path / "frazil.toml"
    toml.write_text(f'[s3]\nsecret_access_key = "file:{kept}"\n')
    found = load(toml, {"FRAZIL_S3_ACCESS_KEY_ID": "from-the-environment"}, {})
    assert found.s3.secret_access_key == Secret("from-a-file")
    assert found.s3.access_key_id == Secret("from-the-environment")
    everything = f"{found} {found!r} {found.shown()}"
    assert "from-a-file" not in everything
    assert "from-the-environment" not in everything
    assert ("s3.secret_access_key", "***", str(toml)) in found.shown()


def test_a_secret_written_down_is_refused_without_repeating_it():
    with pytest.raises(BadInput) as refused:
        load(None, {}, {"s3.secret_access_key": "very-secret"})
    assert "very-secret" not in refused.value.message


# -- what no single setting can tell -----------------------------------------------------------------------------------


@pytest.mark.parametrize("listen", ["0.0.0.0:8181", "10.0.0.1:8181", "[::]:8181", "lake.example:8181"])
def test_elsewhere_than_loopback_needs_tokens(listen):
    with pytest.raises(BadInput, match="token_file") as refused:
        load(None, {}, {"listen": listen})
    assert listen in refused.value.message
    assert str(load(None, {}, {"listen": listen, "token_file": "tokens"}).listen) == listen


def test_credentials_are_shared_on_loopback_only():
    assert load(None, {}, {"share_credentials": True}).share_credentials
    with pytest.raises(BadInput, match="loopback only"):
        load(None, {}, {"share_credentials": True, "listen": "0.0.0.0:1", "token_file": "tokens"})


def test_the_reference_page_has_every_setting_with_its_reason():
    page = config.reference()
    for setting in config.SETTINGS:
        assert f"| `{setting.key}` | `{setting.variable}` |" in page
        assert setting.why in page
        assert setting.why.endswith(".")


def test_every_setting_is_shown_with_its_value_and_origin():
    shown = load(None, {}, {"root": "/data"}).shown()
    assert [key for key, _, _ in shown] == [setting.key for setting in config.SETTINGS]
    assert ("root", "/data", "--root") in shown
    assert ("sync", "true", "default") in shown


# -- what clients are told about files ---------------------------------------------------------------------------------


def test_clients_are_told_endpoint_region_and_style_but_no_key_unless_it_is_shared():
    from frazil.serve import file_io

    environ = {"FRAZIL_S3_ACCESS_KEY_ID": "id", "FRAZIL_S3_SECRET_ACCESS_KEY": "key"}
    flags = {"root": "s3://bucket/lake", "s3.endpoint": "http://s3.local:9000", "s3.region": "eu-1"}
    told = file_io(load(None, environ, flags))
    assert told == {
        "s3.endpoint": "http://s3.local:9000",
        "s3.region": "eu-1",
        "client.region": "eu-1",
        "s3.path-style-access": "true",
    }
    shared = file_io(load(None, environ, {**flags, "share_credentials": True}))
    assert shared == {**told, "s3.access-key-id": "id", "s3.secret-access-key": "key"}
    assert file_io(load(None, environ, {"share_credentials": True})) == {}
