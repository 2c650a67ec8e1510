"""`pullpush golden`, `verify`, `publish` and `trunk`: what numbers stand on, checked or made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from pullpush.errors import PullPushError
from pullpush.lab.root import DEFAULT
from pullpush.progress import Line


@contextmanager
def watched(about: str, stopped: str, **options: Any) -> Iterator[Line]:
    """The line that shows how far something is; stopped: what Ctrl-C leaves."""
    try:
        with Line(about, **options) as line:
            yield line
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or f"stopped; {stopped}") from None


profile_option = click.option(
    "--profile",
    default=DEFAULT,
    show_default=True,
    help="How big a run is: smoke, quick, full, or a YAML file of your own.",
)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--accept", is_flag=True, help="Let the golden files of those named say what they do today.")
def golden(names: tuple[str, ...], accept: bool) -> None:
    """Check what components do, all or NAMEs such as losses/svr, against their golden files.

    Names the kept results that stand on one that does something else.
    """
    if accept and not names:
        raise PullPushError("--accept wants names, such as losses/svr: `pullpush golden` says which disagree")
    from pullpush.site import standing

    if accept:
        for line in standing.accept(names):
            click.echo(line)
        return
    wrong = []
    for one in standing.check(names):
        wrong.append(one.name)
        click.secho(str(one), fg="red")
    if wrong:
        click.echo(
            f"{len(wrong)} disagree. One that is right as it is now: `pullpush golden {wrong[0]} --accept`, and what "
            "stands on it is trained again by `pullpush sweep` and `pullpush keep`. Else the code has a fault."
        )
        raise click.exceptions.Exit(1)
    click.echo("all do what their golden files say")


@click.command()
@click.argument("names", nargs=-1, metavar="[CHAPTER[/EXPERIMENT]]...")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="To train again.")
@click.option("--minutes", default=20.0, show_default=True, type=click.FloatRange(min=0, min_open=True))
@click.option("--all", "every", is_flag=True, help="Train every kept run again, however long that takes.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the draw; default: the date, such as 20261123.")
def verify(names: tuple[str, ...], **options: Any) -> None:
    """Train runs drawn from the kept ones again, and compare them within a band that is stated.

    Writes executed/quick/verified.csv, which the page Every claim shows. Killed and started again with the same seed it
    goes on.
    """
    from pullpush.site import verify as verifying

    with watched("verify", "runs are kept, the same command goes on (with the same --seed)") as line:
        done = verifying.verify(names, **options, report=line.above, watch=line.say)
    for name in done.left:
        click.echo(f"left, since the minutes were over: {name}")
    done.check()
    click.echo(f"{len(done.table)} numbers of {done.runs} runs are inside their bands: {done.path}")


@click.command()
@click.argument("names", nargs=-1, metavar="[CHAPTER]...")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1), help="Pages at once.")
@click.option("--check", is_flag=True, help="Compare and write nothing; exit 1 where a table moved.")
@profile_option
def publish(names: tuple[str, ...], check: bool, **options: Any) -> None:
    """Execute pages (default: all), name the tables that moved, and write executed/PROFILE, which maintainers commit.

    Pages that were executed here before and are current are not executed again.
    """
    from pullpush.site import publish as publishing

    left = "what is published is as it was, finished pages are kept, the same command goes on"
    with watched("publish", left) as line:
        done = publishing.publish(names, check=check, **options, report=line.above, watch=line.say)
    for name in done.timed:
        click.echo(f"not compared, seconds of this machine: {name}")
    for one in (*done.tables, *done.claims):
        click.secho(f"moved: {one.name}: {one.how}", fg="yellow")
    if not done.tables:
        click.echo("no table moved")
    elif not done.claims:
        click.echo("no claim moved")
    click.echo(done.folder)
    if check and done.tables:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("name")
def trunk(name: str) -> None:
    """Train the trunk NAME, which travels with the book, again, in place of the one that is there."""
    from pullpush.lab import material, profiles, session, trunks
    from pullpush.studies.consistency import speech

    book = material.reduced(session.Session("trunks", profiles.profile(), 0, Path()))
    before, now = trunks.again(name, {**material.TRUNKS, **speech.TRUNKS}, book)
    click.echo(f"book/trunks/{name}  validation R@1 {now['validation R@1']:.4f}  {now['seconds']:.0f} s")
    if before and before["sha256"] != now["sha256"]:
        click.echo(
            f"its weights are others than before (R@1 {before['validation R@1']:.4f}): train what stands on it again, "
            "by `pullpush sweep` and `pullpush keep`"
        )
