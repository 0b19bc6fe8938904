"""Every setting: its type, its default, and why it is there. The reference page is `reference()`.

Later wins: the defaults here, then frazil.toml, then the environment (FRAZIL_…), then flags. Each value remembers where
it came from. A key that no setting has, or a value that it cannot take, is an error that says which and where.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from frazil import limits
from frazil.errors import BadInput
from frazil.telemetry import Secret

#: Variables that begin with FRAZIL_ and are no settings of the server.
ELSEWHERE = {
    "FRAZIL_CONFIG": "the CLI's: where frazil.toml is",
    "FRAZIL_URI": "the CLI's: the server it talks to",
    "FRAZIL_TOKEN": "the CLI's: what it shows that server",
    "FRAZIL_CACHE": "the tests': where servers they start are kept",
    "FRAZIL_ICEBERG_JAR": "the pipeline's: Iceberg's runtime for Spark",
}


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class S3(msgspec.Struct, frozen=True, kw_only=True):
    endpoint: str | None
    region: str | None
    path_style: bool | None
    access_key_id: Secret | None
    secret_access_key: Secret | None
    session_token: Secret | None


class Log(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    file: str | None
    file_bytes: int
    files: int


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a server was told. `origins` has where each value came from."""

    root: str
    listen: Address
    workers: int
    catalog: str
    allowed_locations: tuple[str, ...]
    token_file: str | None
    namespace_separator: str
    sync: bool
    share_credentials: bool
    in_flight: int
    s3: S3
    log: Log
    origins: Mapping[str, str]

    def shown(self) -> list[tuple[str, str, str]]:
        """(setting, value, origin) of every setting, secrets hidden: what `frazil config show` prints."""
        return [(setting.key, _text(_reach(self, setting.key)), self.origins[setting.key]) for setting in SETTINGS]


# -- the settings ----------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    key: str
    type: str
    default: Any
    parse: Callable[[object], Any]
    why: str

    @property
    def variable(self) -> str:
        return "FRAZIL_" + self.key.replace(".", "_").upper()

    @property
    def flag(self) -> str:
        return "--" + self.key.replace(".", "-").replace("_", "-")


def _string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a non-empty string")
    return value


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError("true or false")


def _integer(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return parse


def _one_of(*words: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in words:
            raise ValueError(" or ".join(words))
        return str(value)

    return parse


def _address(value: object) -> Address:
    found = (
        re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+)):([0-9]{1,5})", value) if isinstance(value, str) else None
    )
    if found is None or int(found[3]) > 65535:
        raise ValueError("HOST:PORT, or [ADDRESS]:PORT for IPv6")
    return Address(found[1] or found[2], int(found[3]))


def _locations(value: object) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise ValueError("a list of URIs")
    found = tuple(item.strip() for item in listed if item.strip())
    if not all(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", item) for item in found):
        raise ValueError("a list of absolute URIs, such as file:/data or s3://bucket/place")
    return found


def _catalog(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise ValueError("up to 64 letters, digits, dots, dashes and underscores")
    return value


def _separator(value: object) -> str:
    # Clients send letters, digits and -._~ as they are even where they were told to encode them, and names hold them.
    if not isinstance(value, str) or not re.fullmatch(r"(?:%[0-9A-Fa-f]{2})+", value):
        raise ValueError("percent-encoded, such as %1F or %3A")
    if re.search(r"[A-Za-z0-9._~-]", unquote(value)):
        raise ValueError("of characters that clients always encode, such as %1F or %3A")
    return value


def _secret(value: object) -> Secret:
    if isinstance(value, str):
        kind, colon, place = value.partition(":")
        if colon and place and kind == "file":
            try:
                return Secret(Path(place).read_text().strip())
            except OSError as error:
                raise ValueError(f"the name of a readable file ({error.strerror})") from None
    raise ValueError("file:PATH: a secret is not written into the configuration")


def _secret_value(value: object) -> Secret:
    """From the environment, which may hold the secret itself."""
    if isinstance(value, str) and value and not value.startswith("file:"):
        return Secret(value)
    return _secret(value)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "root",
        "directory or URI",
        "./lakehouse",
        _string,
        "Where the catalog and its tables are: a directory or s3://bucket/prefix. It is all the state there is.",
    ),
    Setting(
        "listen",
        "HOST:PORT",
        Address("127.0.0.1", 8181),
        _address,
        "Where to serve. Anything but loopback needs a token file. Port 0 takes a free one.",
    ),
    Setting(
        "workers",
        "1…256",
        1,
        _integer(1, 256),
        "Server processes that share the port. One suits a laptop; as many as there are cores, a server.",
    ),
    Setting(
        "catalog",
        "name",
        "lake",
        _catalog,
        "The catalog's name: the warehouse and the prefix of its paths. Fixed when the catalog is made.",
    ),
    Setting(
        "allowed_locations",
        "URIs, comma-separated",
        (),
        _locations,
        "Where tables may lie besides under the root, when a create or register asks for a location.",
    ),
    Setting(
        "token_file",
        "file",
        None,
        _string,
        "One `principal token` a line, mode 0600; read again when it changes. Without one nobody is asked who they "
        "are, and only loopback is served.",
    ),
    Setting(
        "namespace_separator",
        "percent-encoded",
        "%1F",
        _separator,
        "Between the levels of a namespace in paths, for clients that cannot send %1F, which always works too.",
    ),
    Setting(
        "sync",
        "true or false",
        True,
        _boolean,
        "A directory is on the disk before a write is reported. Off, a power loss may take back what was answered.",
    ),
    Setting(
        "share_credentials",
        "true or false",
        False,
        _boolean,
        "Clients get the server's own S3 keys from its configuration. For one person on one machine: only on loopback.",
    ),
    Setting(
        "in_flight",
        "1…65536",
        limits.requests_in_flight_max,
        _integer(1, 65536),
        "Requests that one process works on at once; more are answered 429 before any effect.",
    ),
    Setting("s3.endpoint", "URL", None, _string, "Another S3 server than Amazon's."),
    Setting("s3.region", "name", None, _string, "The bucket's region; also told to clients."),
    Setting(
        "s3.path_style",
        "true or false",
        None,
        _boolean,
        "The bucket in the path and not in the host name. On where an endpoint is given.",
    ),
    Setting(
        "s3.access_key_id",
        "file:PATH",
        None,
        _secret,
        "Without keys they come from the environment, a web identity token or the machine, as AWS's tools find them.",
    ),
    Setting("s3.secret_access_key", "file:PATH", None, _secret, "Belongs to the access key id."),
    Setting("s3.session_token", "file:PATH", None, _secret, "Of temporary credentials."),
    Setting("log.format", "json or readable", "readable", _one_of("json", "readable"), "For machines or for people."),
    Setting("log.file", "file", None, _string, "Instead of standard error."),
    Setting(
        "log.file_bytes",
        "bytes",
        16 * 1024 * 1024,
        _integer(1024, 2**40),
        "A log file of this size is put aside and a new one begun.",
    ),
    Setting("log.files", "0…1000", 5, _integer(0, 1000), "How many of those put aside are kept."),
)

_BY_KEY = {setting.key: setting for setting in SETTINGS}
_GROUPS = {setting.key.partition(".")[0] for setting in SETTINGS if "." in setting.key}


# -- reading them ------------------------------------------------------------------------------------------------------


def load(toml_path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """The effective configuration. `flags` are by setting (`log.format`); those that are None were not given."""
    values = {setting.key: setting.default for setting in SETTINGS}
    origins = {setting.key: "default" for setting in SETTINGS}

    def take(key: str, value: object, origin: str, *, environment: bool = False) -> None:
        setting = _BY_KEY.get(key)
        if setting is None:
            raise BadInput(f"{origin}: there is no setting {key}")
        parse = _secret_value if environment and setting.parse is _secret else setting.parse
        try:
            values[key] = parse(value)
        except ValueError as wrong:
            told = "what it was given" if setting.parse is _secret else repr(value)
            raise BadInput(f"{origin}: {key} must be {wrong}, not {told}") from None
        origins[key] = origin

    if toml_path is not None:
        for key, value in _toml(Path(toml_path)):
            take(key, value, str(toml_path))
    variables = {setting.variable: setting.key for setting in SETTINGS}
    for name in sorted(environ):
        if name in variables and environ[name] != "":
            take(variables[name], environ[name], name, environment=True)
        elif name.startswith("FRAZIL_") and name not in variables and name not in ELSEWHERE:
            raise BadInput(f"{name}: there is no such setting")
    for key, value in flags.items():
        if value is not None:
            take(key, value, _BY_KEY[key].flag if key in _BY_KEY else "flags")
    return _checked(_built(values, origins))


def _toml(path: Path) -> list[tuple[str, object]]:
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from None
    flat: list[tuple[str, object]] = []
    for key, value in document.items():
        if key in _GROUPS and isinstance(value, dict):
            flat += [(f"{key}.{inner}", setting) for inner, setting in value.items()]
        else:
            flat.append((key, value))
    return flat


def _built(values: Mapping[str, Any], origins: Mapping[str, str]) -> Config:
    def group(name: str) -> dict[str, Any]:
        return {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{name}.")}

    plain = {key: value for key, value in values.items() if "." not in key}
    return Config(**plain, s3=S3(**group("s3")), log=Log(**group("log")), origins=origins)


def _checked(config: Config) -> Config:
    """What no single setting can tell."""
    if not config.listen.loopback and config.token_file is None:
        raise BadInput(
            f"{config.origins['listen']}: listening on {config.listen} would let anybody in: "
            "give a token_file, or listen on loopback"
        )
    if config.share_credentials and not config.listen.loopback:
        raise BadInput(
            f"{config.origins['share_credentials']}: share_credentials would hand the server's own keys to whoever "
            f"reaches {config.listen}: it works on loopback only"
        )
    return config


# -- showing them ------------------------------------------------------------------------------------------------------


def _reach(config: Config, key: str) -> object:
    value: object = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Address():
            return str(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def reference() -> str:
    """The reference page."""
    lines = [
        "| setting | variable | type | default | |",
        "|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        default = f"`{_text(setting.default)}`" if _text(setting.default) else ""
        lines.append(f"| `{setting.key}` | `{setting.variable}` | {setting.type} | {default} | {setting.why} |")
    return "\n".join(lines) + "\n"
