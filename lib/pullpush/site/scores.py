"""The commands `evaluate` and `search`: of a run of one's own, by its folder, or of a published model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pullpush.errors import PullPushError


@click.command()
@click.argument("model")
@click.argument("dataset", required=False)
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

    from pullpush.data.recordings.registry import listing
    from pullpush.encoders.pretrained import MODELS, open_model
    from pullpush.site import evaluate as evaluating
    from pullpush.training.__main__ import open_run

    if Path(model).is_dir() and dataset is None:
        run, clips = _opened(Path(model), None, asked["split"])
        table = evaluating.of_clips(run.model, clips, language, tau=run.tau, batch_size=asked["batch_size"])
        return _show_scores(table, out, model=model, dataset="its own")
    if dataset is None:
        raise PullPushError(f"name a dataset for {model}, such as clotho or folder:/path; a run's folder needs none")
    if Path(model).is_dir():
        found, tau, *_ = open_run(Path(model))
    else:
        remote = {"trust_remote_code": trust_remote_code} if MODELS[model.partition(":")[0]].remote else {}
        listing(dataset, asked["split"])  # before the model, which may come from the network
        found = open_model(model, **remote)
        tau = found.tau
    found.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    table = evaluating.evaluate(found, dataset, tau=tau, languages=language, **asked)
    _show_scores(table, out, model=model, dataset=dataset)


def _opened(folder: Path, dataset: str | None, split: str) -> tuple[Any, Any]:
    """A run of one's own, and the clips of its data or of another dataset."""
    from pullpush.data.clips import load_data
    from pullpush.data.recordings.corpora import CorpusConfig, load_split
    from pullpush.training.__main__ import open_run

    run = open_run(folder)
    if dataset is None:
        return run, load_data(run.config).split(split)
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
@click.option("--split", default="test", show_default=True, help="Of the data: train, valid or test.")
@click.option("--language", default="eng", show_default=True, help="Of the query and of the captions shown.")
def search(run: Path, query: str, dataset: str | None, top: int, split: str, language: str) -> None:
    """Search the clips of a RUN of yours, or of a DATASET, for a QUERY such as "a dog barks"."""
    from pullpush.site.evaluate import search as found

    trained, clips = _opened(run, dataset, split)
    for line in found(trained.model, clips, query, top=top, language=language):
        click.echo(line)
