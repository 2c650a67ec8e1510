"""Commands for what numbers stand on, checked or made again, and for scores of one's own run or a published model."""

from collections.abc import Iterator, Sized
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
    "--profile", default=DEFAULT, show_default=True, help="How big: smoke, quick, full, or a YAML file of your own."
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
    for name, how in standing.check(names):
        wrong.append(name)
        click.secho(f"{name}: {how}", fg="red")
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


@click.command()
@click.argument("model")
@click.argument("dataset", required=False)
@click.option("--split", type=click.Choice(("train", "valid", "test")), default="test", show_default=True)
@click.option("--language", multiple=True, default=("eng",), show_default=True, help="Of captions; repeatable.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Cut longer recordings; default: 30 for Clotho, 10 for the others.",
)
@click.option("--clips", type=click.IntRange(min=2), help="Only so many: the first, of labelled sets spread evenly.")
@click.option("--subset", help="Of the test clips, such as 957 of audiocaps.")
@click.option("--text-cleaning", help="Of captions: none, ml-clap or dcase; default: as a run's were, else none.")
@click.option("--batch-size", default=128, show_default=True, type=click.IntRange(min=2), help="Of the forces.")
@click.option("--device", default="", help="Such as cuda; default: a GPU where there is one.")
@click.option("--trust-remote-code", is_flag=True, help="Run the publisher's code, for models that come with it.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A CSV file for the scores.")
def evaluate(
    model: str,
    dataset: str | None,
    device: str,
    trust_remote_code: bool,
    out: Path | None,
    language: tuple[str, ...],
    **asked: Any,
) -> None:
    """Score a MODEL on a DATASET by the book's metrics, geometry and forces.

    MODEL is the folder of a run of yours (`python -m pullpush.training --out RUN`), which without DATASET is scored on
    its own test clips; or a whole published one: clap, pe_audio or glap, as on its card or with other
    weights of its kind (clap:laion/larger_clap_general, clap:/a/folder). DATASET has captions or labels: any that
    `pullpush list --contents` shows, folder:/path or hf:name.
    """
    import torch

    from pullpush.data.recordings.registry import find, listing
    from pullpush.encoders.pretrained import MODELS, open_model
    from pullpush.site import evaluate as evaluating
    from pullpush.training.__main__ import open_run

    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=place)
    except (AssertionError, RuntimeError) as error:
        raise PullPushError(f"--device {place} cannot be had here: {str(error).splitlines()[0]}") from error
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)  # before the model, which takes long
    if Path(model).is_dir() and dataset is None:
        if given := [name for name in ("seconds", "clips", "subset", "text_cleaning") if asked[name] is not None]:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise PullPushError(f"{names} goes with a DATASET: without one a run is scored on its clips as it had them")
        run, clips = _opened(Path(model), None, asked["split"])
        run.model.to(place)
        table = evaluating.of_clips(run.model, clips, language, tau=run.tau, batch_size=asked["batch_size"])
        return _show_scores(table, out, model=model, dataset="its own")
    if dataset is None:
        raise PullPushError(f"name a dataset for {model}, such as clotho or folder:/path; a run's folder needs none")
    if Path(model).is_dir():
        found, tau, config = open_run(Path(model))
        if not find(dataset).labelled:
            asked["text_cleaning"] = asked["text_cleaning"] or getattr(config, "text_cleaning", None)
    elif "/" in (kind := model.partition(":")[0]):
        raise PullPushError(f"there is no folder {kind}: name a run's, or a published model ({', '.join(MODELS)})")
    else:
        remote = {"trust_remote_code": trust_remote_code} if MODELS[kind].remote else {}
        listing(dataset, asked["split"])  # before the model, which may come from the network
        found = open_model(model, **remote)
        tau = found.tau
    found.to(place)
    asked["text_cleaning"] = asked["text_cleaning"] or "none"
    table = evaluating.evaluate(found, dataset, tau=tau, languages=language, **asked)
    _show_scores(table, out, model=model, dataset=dataset)


def _opened(folder: Path, dataset: str | None, split: str) -> tuple[Any, Any]:
    """A run of one's own, and the clips of its data or of another dataset."""
    from pullpush.data.clips import load_data
    from pullpush.data.recordings.corpora import CorpusConfig, load_split
    from pullpush.training.__main__ import open_run

    run = open_run(folder)
    if dataset is None:
        clips = load_data(run.config).split(split)
        if not isinstance(clips, Sized):
            raise PullPushError(
                f"the clips of {split!r} lie in shards, which are read as they are needed: take another"
            )
        return run, clips
    return run, load_split(CorpusConfig(dataset, sample_rate=run.model.sample_rate or 16_000), split)


def _show_scores(table: Any, out: Path | None, **named: str) -> None:
    """Print scores, and write them to a file if one is named."""
    from pullpush.site.evaluate import plain

    click.echo(plain(table))
    if out is not None:
        table.assign(**named).to_csv(out, index=False)
        click.echo(out)


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("query")
@click.argument("dataset", required=False)
@click.option("--top", default=5, show_default=True, type=click.IntRange(min=1), help="How many clips to show.")
@click.option("--split", type=click.Choice(("train", "valid", "test")), default="test", show_default=True)
@click.option("--language", default="eng", show_default=True, help="Of the query and of the captions shown.")
def search(run: Path, query: str, dataset: str | None, top: int, split: str, language: str) -> None:
    """Search the clips of a RUN of yours, or of a DATASET, for a QUERY such as "a dog barks"."""
    from pullpush.data.recordings.corpora import clean
    from pullpush.site.evaluate import search as found

    trained, clips = _opened(run, dataset, split)
    query = clean(query, getattr(trained.config, "text_cleaning", "none"))  # as its captions were
    for line in found(trained.model, clips, query, top=top, language=language):
        click.echo(line)
