"""`pullpush golden`, `verify`, `publish` and `trunk`: what numbers stand on, checked or made again."""

from __future__ import annotations

import click

from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.progress import Line


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--accept", is_flag=True, help="Let the golden files of those named say what they do today.")
def golden(names: tuple[str, ...], accept: bool) -> None:
    """Check what components do, all or NAMEs such as losses/svr, against their golden files.

    Names the kept results that stand on one that does something else.
    """
    from pullpush.site import golden as checking  # here, so that --help does not wait for torch

    if accept and not names:
        raise PullPushError("--accept wants names, such as losses/svr: `pullpush golden` says which disagree")
    if accept:
        for line in checking.accept(names):
            click.echo(line)
        return
    wrong = []
    for one in checking.check(names):
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
def verify(names: tuple[str, ...], runs: int, minutes: float, every: bool, seed: int | None) -> None:
    """Train runs drawn from the kept ones again, and compare them within a band that is stated.

    Writes executed/quick/verified.csv, which the page Every claim shows. Killed and started again with the same seed it
    goes on.
    """
    from pullpush.site import verify as verifying

    options = {"runs": runs, "minutes": minutes, "every": every, "seed": seed}
    try:
        with Line("verify") as line:
            done = verifying.verify(names, **options, report=line.above, watch=line.say)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; runs are kept, the same command goes on (with the same --seed)") from None
    for name in done.left:
        click.echo(f"left, since the minutes were over: {name}")
    done.check()
    click.echo(f"{len(done.table)} numbers of {done.runs} runs are inside their bands: {done.path}")


@click.command()
@click.argument("names", nargs=-1, metavar="[CHAPTER]...")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1), help="Pages at once.")
@click.option("--check", is_flag=True, help="Compare and write nothing; exit 1 where a table moved.")
@click.option("--profile", default=profiles.DEFAULT, show_default=True, help="As for run.")
def publish(names: tuple[str, ...], jobs: int, check: bool, profile: str) -> None:
    """Execute pages (default: all), name the tables that moved, and write executed/PROFILE, which maintainers commit.

    Pages that were executed here before and are current are not executed again.
    """
    from pullpush.site import publish as publishing

    try:
        with Line("publish") as line:
            done = publishing.publish(names, profile=profile, jobs=jobs, check=check, report=line.above, watch=line.say)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(
            str(stop) or "stopped; what is published is as it was, finished pages are kept, the same command goes on"
        ) from None
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
    from pullpush.site import trunks

    before, now = trunks.make(name)
    click.echo(f"book/trunks/{name}  validation R@1 {now['validation R@1']:.4f}  {now['seconds']:.0f} s")
    if before and before["sha256"] != now["sha256"]:
        click.echo(
            f"its weights are others than before (R@1 {before['validation R@1']:.4f}): train what stands on it again, "
            "by `pullpush sweep` and `pullpush keep`"
        )
