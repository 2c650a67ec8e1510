"""`pullpush cache` and `pullpush doctor`: what the cache holds, and whether it is as it was written."""

import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import click

from pullpush.cache import HOME, home, inventory
from pullpush.cache.inventory import DAY, Entry
from pullpush.cache.locks import remove
from pullpush.cache.sums import sums_of
from pullpush.errors import CacheError, PullPushError, check_all_known
from pullpush.progress import Line

LITTLE = 2 << 30  # bytes of free space below which a full disk is near
kind_option = click.option("--kind", "kinds", multiple=True, help="Only this kind, such as runs; repeatable.")


@click.command()
@kind_option
@click.option("--older", type=click.FloatRange(min=0), metavar="DAYS", help="Only what was made so long ago.")
@click.option("--unused", type=click.FloatRange(min=0), metavar="DAYS", help="Only what nobody opened for so long.")
@click.option("--prune", is_flag=True, help="Remove what is shown; it is made again when asked for.")
def cache(kinds: tuple[str, ...], older: float | None, unused: float | None, prune: bool) -> None:
    """Show what the cache holds by kind, and remove what --kind, --older and --unused choose with --prune.

    Published datasets and a language model's answers, which may be gone or cost money, are removed by --kind alone.
    """
    if prune and not kinds and older is None and unused is None:
        raise PullPushError("--prune wants to know what: give --kind, --older or --unused (0 days is everything)")
    _check(kinds)
    now = time.time()
    found = [
        entry
        for entry in inventory.entries(kinds)
        if (older is None or now - entry.made >= older * DAY) and (unused is None or now - entry.used >= unused * DAY)
    ]
    for kind in sorted({entry.kind for entry in found}):
        click.echo(_row(kind, [entry for entry in found if entry.kind == kind]))
    click.echo(f"{_row('all', found)}  in {home()}")
    if prune:
        left = _remove(found, kinds)
        click.echo(f"removed {len(found) - len(left)} entries, {megabytes(_size(found) - _size(left))}")


@click.command()
@kind_option
@click.option("--repair", is_flag=True, help="Remove what is damaged or left over; it is made again when asked for.")
def doctor(kinds: tuple[str, ...], repair: bool) -> None:
    """Check the cache: whether it can be written, and every entry by its checksums.

    Damaged datasets and answers are removed by --kind alone, as by `pullpush cache`.
    """
    _check(kinds)
    bad: list[Entry] = []
    entries = unknown_to = 0
    if said := _disk():
        click.echo(said)
    with Line("checking") as line:
        for entry, why in inventory.damaged(kinds, further=_unreadable):
            entries += 1
            line.say(f"{entry.kind}/{entry.path.name}")
            unknown_to += not why and not sums_of(entry.path).exists()
            if why:
                bad.append(entry)
                line.above(f"damaged: {entry.path}: {why}")
    left = inventory.leftovers()
    for path in left:
        click.echo(f"left over: {path}")
    click.echo(f"{entries} entries, {len(bad)} damaged, {len(left)} left over by killed processes")
    if unknown_to:
        click.echo(f"{unknown_to} have no checksums (texts, earlier versions)")
    if repair:
        kept = _remove(bad, kinds)
        for path in left:
            remove(path)
        click.echo(f"removed {len(bad) - len(kept)} damaged entries and {len(left)} leftovers")
        bad = kept
    elif bad or left:
        click.echo("pullpush doctor --repair removes them; what is needed is made again")
    if bad:
        raise click.exceptions.Exit(1)


def megabytes(size: float) -> str:
    """A number of bytes, as people read it.

    >>> megabytes(3_100_000_000), megabytes(20_000)
    ('3.1 GB', '0.0 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _check(kinds: Iterable[str]) -> None:
    known = {entry.kind for entry in inventory.entries()} if kinds else set()
    check_all_known("kind of cache", kinds, known)


def _remove(entries: Iterable[Entry], kinds: Iterable[str]) -> list[Entry]:
    """Remove entries, precious ones only where their kind is named; says and gives those that are left."""
    left = []
    for entry in entries:
        if entry.kind in inventory.PRECIOUS and entry.kind not in kinds:
            click.echo(f"left: {entry.path} cannot be made again; --kind {entry.kind} removes it")
        elif not inventory.drop(entry):
            click.echo(f"left: {entry.path} is in use, or may not be removed")
        else:
            continue
        left.append(entry)
    return left


def _size(entries: Iterable[Entry]) -> int:
    return sum(entry.size for entry in entries)


def _row(name: str, entries: list[Entry]) -> str:
    used = f"used {time.strftime('%Y-%m-%d', time.localtime(max(e.used for e in entries)))}" if entries else ""
    return f"{name:14}{len(entries):7} entries{megabytes(_size(entries)):>10}  {used}".rstrip()


def _disk() -> str:
    """What is wrong with the cache's place; empty if nothing is."""
    place = home()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        if not place.is_dir():
            raise CacheError(f"{place} cannot be the cache: {error}; set {HOME} to a folder") from error
        return f"{place} cannot be written: what is there can be read, nothing can be added"
    free = shutil.disk_usage(place).free
    return f"only {megabytes(free)} are free for {place}: pullpush cache --prune makes room" if free < LITTLE else ""


def _unreadable(path: Path) -> str:
    """What is wrong with a file that has no checksum: an answer, or what grows."""
    said = ""
    try:
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
                (said,) = base.execute("PRAGMA quick_check(1)").fetchone()
            said = "it is empty" if not path.stat().st_size else "" if said == "ok" else said
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, sqlite3.Error) as error:
        said = str(error)
    return f"{path.name} cannot be read ({said})" if said else ""
