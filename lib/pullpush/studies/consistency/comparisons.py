"""Scores in many languages, summed up as the papers' tables are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab import common
from pullpush.lab.comparisons import differences
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference
from pullpush.show.palette import method_name
from pullpush.studies.consistency.grounds import require

CONSISTENCY = ("Gap", "Dis", "relative distance", "MRV", "log rank variance")
WEST, EAST = ("spa", "fra", "deu", "nld", "cat"), ("jpn", "zho")


def by_run(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `Scores` with a row a run: means over the languages."""
    keys = list(table.columns[: table.columns.get_loc("seed") + 1])  # system, what varies, seed
    means = table.groupby(keys, sort=False).mean(numeric_only=True).reset_index()
    return means.astype({"steps": int})


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Its systems by the names that a page prints: "ml-clap ×8" is "ML-CLAP ×8"."""
    columns = [column for column in ("system", "baseline", "label") if column in table]
    return table.assign(**{column: table[column].map(_name) for column in columns})


def _name(system: str) -> str:
    scheme, *rest = system.split(" ")
    return " ".join([method_name(scheme), *rest])


def compared(gains: pd.DataFrame) -> pd.DataFrame:
    """Differences for a figure: the column pair says "KCL over ML-CLAP"."""
    names = named(gains)
    return gains.assign(pair=names["system"] + " over " + names["baseline"])


def gains_by_language(scores: Scores, pairs: Iterable[tuple[str, str]], metric: str) -> pd.DataFrame:
    """What systems have over their baselines in each language; p is adjusted over all rows."""
    return differences(
        (
            {"system": system, "baseline": base, "language": language, "metric": metric},
            scores.contrast(system, base, metric, {"language": language}),
        )
        for system, base in pairs
        for language in scores.experiment.languages
    )


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Differences to print: what stands in front, the difference in points, its p and what it was taken from."""
    numbers = ["value", "low", "high", "half width", "p", "seeds", "clips"]
    cells = [
        f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
        for _, row in table.iterrows()
    ]
    size = [f"{seeds} × {clips}" for seeds, clips in zip(table["seeds"], table["clips"], strict=True)]
    front = named(table.drop(columns=numbers)).rename(columns={"baseline": "over"})
    return front.assign(**{"difference (points)": cells, "p (Holm)": table["p"].map("{:.3f}".format), "n": size})


def standings(table: pd.DataFrame, by: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Who stands where, in %: mean ± standard deviation over the runs of each value of a column, such as "system".

    The last column is what R@1 on the validation clips rose by in the last quarter of training.
    """
    means = common.mean_and_spread(table, by, [*metrics, "unconverged"], percent=True)
    return named(means.rename(columns={"unconverged (%)": "still gained (%)"}))


def language_table(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Table 1: a row a language and then their average, a column a (metric, system); means over seeds."""
    wide = _wide(table, metrics)
    wide.loc["avg"] = wide.mean()
    return wide


def distance_table(table: pd.DataFrame, reference: str = "eng") -> pd.DataFrame:
    """Table 2: a row a language, then their average and the reference's own second caption; means over seeds.

    Columns: (metric, system), of Gap, Dis and the relative distance to the reference's first captions.
    """
    metrics = CONSISTENCY[:3]
    wide = _wide(table, metrics).rename(index={reference: "avg"})  # the score's own column of the reference
    wide = wide.loc[[*(language for language in wide.index if language != "avg"), "avg"]]
    within = [f"{metric} within {reference}" for metric in metrics]
    if set(within) <= set(table.columns):
        wide.loc[f"{reference}, second caption"] = _wide(table, within).loc[reference].to_numpy()
    return wide


def _wide(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    mean = table.groupby(["language", "system"], sort=False)[list(metrics)].mean().unstack("system")
    return mean.rename(columns=method_name, level="system").rename_axis(index=None, columns=[None, None])


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """A table of columns (metric, system) to save: columns "Gap KCL", the index a column."""
    return table.set_axis([" ".join(column) for column in table], axis=1).rename_axis("language").reset_index()


def rank_table(scores: Scores) -> pd.DataFrame:
    """Table 3, a row a run: system, seed, unconverged, MRV, median (over clips), worst (share of MRV that the worst 5 %
    of the clips bring), log rank variance, mean rank.
    """
    table = by_run(scores.table)[["system", "seed", "unconverged", "MRV", "log rank variance", "mean rank"]]
    variances = [np.sort(scores.clips[key]["MRV"])[::-1] for key in zip(table["system"], table["seed"], strict=True)]
    worst = [each[: max(1, round(0.05 * len(each)))].sum() / max(each.sum(), 1e-12) for each in variances]
    table.insert(4, "median", [np.median(each) for each in variances])
    table.insert(5, "worst", worst)
    return table


def evenness(scores: Scores, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Relative changes of CONSISTENCY, in %, ± half of the interval: a row a pair."""
    rows = []
    for system, base in pairs:
        changes = {metric: scores.contrast(system, base, metric, relative=True) for metric in CONSISTENCY}
        texts = {name: f"{100 * one.value:+.1f} ± {100 * one.half_width:.1f}" for name, one in changes.items()}
        rows.append(
            {"system": system, "baseline": base} | {name: text.replace("-", "−") for name, text in texts.items()}
        )
    return pd.DataFrame(rows)


def caption_cosines(
    encoder: nn.Module, split: Clips, languages: Sequence[str] = LANGUAGES, *, shift: int = 0
) -> dict[str, np.ndarray]:
    """SupCLAP Table 10 with a frozen encoder: cosines `(N,)` of a clip's first English caption with its first in a
    language; "eng" is the second English caption, if every clip has one. shift: of the clip so many places before.
    """

    def features(language: str, number: int) -> Tensor:
        return F.normalize(encoder([captions[number] for captions in split.captions(language)]).float(), dim=1)

    several = all(len(captions) > 1 for captions in split.captions("eng"))
    numbers = {code: int(code == "eng") for code in languages if code != "eng" or several}
    english = features("eng", 0)
    return {code: (english * features(code, n).roll(shift, 0)).sum(1).numpy() for code, n in numbers.items()}


def west_less_east(cosines: Mapping[str, np.ndarray]) -> Difference:
    """How much nearer captions in the European languages lie to the English ones than Japanese and Chinese ones do.

    Raises:
        LanguagesError: there are none in one of the seven.
    """
    require(list(cosines), *WEST, *EAST)
    west, east = (np.mean([cosines[code] for code in side], axis=0) for side in (WEST, EAST))
    return difference((west - east)[None])
