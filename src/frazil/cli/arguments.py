"""Every command, its arguments and its help. What a command does is in the module that `run` names, loaded then."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from frazil.cli.failures import EXIT_CODES, USAGE

DEFAULT_URI = "http://127.0.0.1:8181"

_Commands = Any  # argparse keeps the class of its subparsers to itself


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **named: Any) -> None:
        named.setdefault("allow_abbrev", False)
        named.setdefault("formatter_class", _Help)
        super().__init__(**named)

    def error(self, message: str) -> NoReturn:
        # One line; the usage is a page of its own.
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = build()
    arguments, rest = parser.parse_known_args(argv)
    # argparse ends a list of words at the first option: `set NAME --owner ada a=b` would lose a=b.
    pairs = getattr(arguments, "pairs", None)
    if pairs is not None and rest and not any(each.startswith("-") for each in rest):
        try:
            pairs.extend(_pair(each) for each in rest)
        except argparse.ArgumentTypeError as error:
            parser.error(str(error))
    elif rest:
        parser.error(f"this is one too many: {' '.join(rest)}")
    return arguments


def build() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="frazil",
        description="An Apache Iceberg REST catalog whose only state is an object store.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version="")  # answered before this is built; here for --help
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _up(commands)
    _serve(commands)
    _config(commands)
    _store(commands)
    _namespaces(commands)
    _tables(commands)
    _doctor(commands)
    return parser


# -- servers and machines ------------------------------------------------------------------------------------------


def _up(commands: _Commands) -> None:
    up = _command(commands, "up", ("serving", "up"), "serve a catalog from a local directory, and say how to reach it")
    up.add_argument("directory", nargs="?", metavar="DIR", help="made if it is not there (default: ./lakehouse)")
    _listen(up)


def _serve(commands: _Commands) -> None:
    serve = _command(commands, "serve", ("serving", "serve"), "serve a catalog from a directory or a bucket")
    _server_options(serve)


def _config(commands: _Commands) -> None:
    group = _group(commands, "config", "the settings of a server")
    show = _command(
        group, "show", ("settings", "show"), "the settings as `frazil serve` would use them, and their origin"
    )
    _server_options(show)
    _json(show)


def _store(commands: _Commands) -> None:
    group = _group(commands, "store", "the object store behind a catalog")
    check = _command(group, "check", ("store", "check"), "whether a store keeps the contract that a catalog needs")
    check.add_argument(
        "root", metavar="URL", help="a directory, file:/… or s3://bucket/prefix; what it writes it deletes"
    )
    check.add_argument("--rounds", type=_count, default=None, metavar="N", help="races of each kind")
    check.add_argument("--writers", type=_count, default=None, metavar="N", help="writers in each race")
    _config_file(check)
    _json(check)


def _doctor(commands: _Commands) -> None:
    doctor = _command(
        commands, "doctor", ("doctor", "doctor"), "what is in the way: clocks, Java, root, permissions, port"
    )
    _server_options(doctor)
    _client_options(doctor)
    _json(doctor)


def _server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="DIR|URI", help="where the catalog lies: a directory, file:/… or s3://…")
    _listen(parser)
    parser.add_argument("--workers", type=_count, metavar="N", help="processes that serve")
    parser.add_argument("--token-file", metavar="FILE", help="`principal token` a line, mode 0600; needed off loopback")
    _config_file(parser)


def _listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default: 127.0.0.1:8181)")


def _config_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings in TOML; FRAZIL_… and options win over it")


# -- what a server does for people ---------------------------------------------------------------------------------


def _namespaces(commands: _Commands) -> None:
    group = _group(commands, "namespaces", "list, show, create, drop and set namespaces")
    listed = _asking(group, "list", ("namespaces", "list_"), "the namespaces at the top, or in PARENT")
    listed.add_argument("namespace", nargs="?", type=_namespace, metavar="PARENT", default=())
    listed.add_argument("-r", "--recursive", action="store_true", help="and those inside, however deep")
    _asking(group, "show", ("namespaces", "show"), "a namespace's properties", _namespace)
    create = _asking(
        group, "create", ("namespaces", "create"), "make a namespace; its parent must be there", _namespace
    )
    _pairs(create)
    _asking(group, "drop", ("namespaces", "drop"), "drop an empty namespace", _namespace)
    changed = _asking(group, "set", ("namespaces", "set_"), "set and remove properties", _namespace)
    _pairs(changed)
    _removals(changed)


def _tables(commands: _Commands) -> None:
    group = _group(commands, "tables", "list, show, set, tag, drop, rename and register tables")
    listed = _asking(group, "list", ("tables", "list_"), "every table, or those in NAMESPACE")
    listed.add_argument("namespace", nargs="?", type=_namespace, metavar="NAMESPACE", default=())
    _asking(group, "show", ("tables", "show"), "schema, partitions, properties, owner and tags of a table", _table)
    _asking(group, "history", ("tables", "history"), "when a table changed, and how", _table)
    changed = _asking(group, "set", ("tables", "set_"), "set and remove properties, in one commit", _table)
    _pairs(changed)
    _removals(changed)
    tag = _asking(group, "tag", ("tables", "tag"), "set and remove tags", _table)
    tag.add_argument("pairs", nargs="*", type=_pair, metavar="KEY=VALUE")
    _removals(tag)
    drop = _asking(group, "drop", ("tables", "drop"), "drop a table; says how it comes back", _table)
    drop.add_argument("--purge", action="store_true", help="its files may be deleted: it does not come back for sure")
    rename = _asking(group, "rename", ("tables", "rename"), "give a table another name or namespace", _table)
    rename.add_argument("target", type=_table, metavar="NEW")
    register = _asking(group, "register", ("tables", "register"), "name a table by its metadata file", _table)
    register.add_argument("location", metavar="METADATA_LOCATION", help="as `tables drop` and `tables show` print it")


def _asking(
    group: _Commands, name: str, run: tuple[str, str], what: str, named: Callable[[str], Any] | None = None
) -> argparse.ArgumentParser:
    """A command that asks a server."""
    parser = _command(group, name, run, what)
    if named is not None:
        parser.add_argument("name", type=named, metavar="NAME", help='dotted; "…" around a part that has a dot in it')
    _client_options(parser)
    _json(parser)
    return parser


def _client_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--uri", metavar="URI", help=f"the server (default: FRAZIL_URI, else {DEFAULT_URI})")
    parser.add_argument("--token", metavar="TOKEN", help="who asks; FRAZIL_TOKEN keeps it out of the list of processes")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pairs", nargs="*", type=_pair, metavar="KEY=VALUE")
    parser.add_argument("--owner", metavar="WHO", help="short for owner=WHO")
    parser.add_argument("--description", metavar="TEXT", help="short for comment=TEXT")


def _removals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="may be given several times")


def _group(commands: _Commands, name: str, what: str) -> _Commands:
    parser = commands.add_parser(name, help=what, description=_sentence(what))
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _command(commands: _Commands, name: str, run: tuple[str, str], what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=_sentence(what), epilog=EXIT_CODES
    )
    parser.set_defaults(run=run)
    return parser


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


# -- kinds of arguments --------------------------------------------------------------------------------------------


def _namespace(text: str) -> Any:
    from frazil.cli.identifiers import parse_namespace

    return _parsed(parse_namespace, text)


def _table(text: str) -> Any:
    from frazil.cli.identifiers import parse_table

    return _parsed(parse_table, text)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    from frazil.errors import BadInput

    try:
        return parse(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(error.message) from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)
