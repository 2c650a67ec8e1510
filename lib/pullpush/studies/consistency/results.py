"""Scores in many languages, summed up as the papers' tables are, and captions of stamps in languages of no training."""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import add

import numpy as np
import pandas as pd
import torch
from scipy.optimize import least_squares
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.data.recordings.tuxpaint import Stamps
from pullpush.lab.comparisons import by_run, differences
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Measure
from pullpush.lab.scores import Scores
from pullpush.metrics import zero_shot_predictions
from pullpush.metrics.inference import Difference, difference
from pullpush.parallel import in_threads
from pullpush.show.palette import language_name, method_name
from pullpush.studies.consistency.data import LanguagesError, Runs
from pullpush.studies.means import by_clip, by_seed
from pullpush.training.evaluate import embed_audio, embed_texts

CONSISTENCY = ("Gap", "Dis", "relative distance", "MRV", "log rank variance")
WEST, EAST = ("spa", "fra", "deu", "nld", "cat"), ("jpn", "zho")
# Languages of the stamps that no objective trains on, by whether the sentence encoder was trained on them.
KNOWN = {"it": "Italian", "pt": "Portuguese", "pl": "Polish", "ru": "Russian", "tr": "Turkish", "ko": "Korean"}
STRANGE = {"gl": "Galician", "ro": "Romanian", "bg": "Bulgarian", "cs": "Czech", "el": "Greek", "sv": "Swedish"}
STRANGE |= {"fi": "Finnish", "hu": "Hungarian", "vi": "Vietnamese"}
GROUPS = dict.fromkeys(LANGUAGES, "trained on") | dict.fromkeys(KNOWN, "new, known to the encoder")
GROUPS |= dict.fromkeys(STRANGE, "new to the encoder, too")
NAMES = {code: language_name(code) for code in LANGUAGES} | KNOWN | STRANGE


def by_language(scores: Scores, metrics: Sequence[str], *, average: bool = True) -> pd.DataFrame:
    """Tables 1 and 2: a row a language and then their average, a column "metric system"; means over seeds."""
    mean = scores.table.groupby(["language", "system"], sort=False)[list(metrics)].mean().unstack("system")
    mean.columns = [f"{metric} {method_name(system)}" for metric, system in mean.columns]
    if average:
        mean.loc["avg"] = mean.mean()
    return mean


def distance_table(scores: Scores) -> pd.DataFrame:
    """Table 2, of Gap, Dis and the relative distance to the first English captions: the average is the score's own
    column of English, and the last row, where there is one, a clip's second English caption.
    """
    wide = by_language(scores, CONSISTENCY[:3], average=False).rename(index={"eng": "avg"})
    wide = wide.loc[[*(language for language in wide.index if language != "avg"), "avg"]]
    within = [f"{metric} within eng" for metric in CONSISTENCY[:3]]
    if {*within} <= {*scores.table}:
        wide.loc["eng, second caption"] = by_language(scores, within, average=False).loc["eng"].to_numpy()
    return wide


def rank_table(scores: Scores) -> pd.DataFrame:
    """Table 3, a row a run: system, seed, unconverged, MRV, median (over clips), worst (share of MRV that the worst 5 %
    of the clips bring), log rank variance, mean rank.
    """
    table = by_run(scores)[["system", "seed", "unconverged", "MRV", "log rank variance", "mean rank"]]
    variances = [np.sort(scores.clips[key]["MRV"])[::-1] for key in zip(table["system"], table["seed"], strict=True)]
    worst = [each[: max(1, round(0.05 * len(each)))].sum() / max(each.sum(), 1e-12) for each in variances]
    table.insert(4, "median", [np.median(each) for each in variances])
    table.insert(5, "worst", worst)
    return table


def at_equal_rank(table: pd.DataFrame, line: Sequence[str], system: str, baseline: str = "") -> Difference:
    """How much larger a system's MRV is than those systems' on the line would be at its mean rank, as a fraction.

    MRV falls with the mean rank alone: the line is that of log MRV over log mean rank, of each seed's own runs.

    Args:
        table: a row a run: system, seed, MRV, mean rank.
        line: the systems whose runs make the line; at two mean ranks or more a seed.
        baseline: another system, in place of those on the line: how much further from it than that one.

    Raises:
        ExperimentError: ranks of a run do not vary, or the runs on the line stand at one mean rank.
    """
    found = []
    for _, rows in table.groupby("seed"):
        logs = np.log(rows[["mean rank", "MRV"]].to_numpy(float))
        on_line, ours, theirs = (rows["system"].isin(names).to_numpy() for names in (line, [system], [baseline]))
        fitted = np.polynomial.Polynomial.fit(logs[on_line, 0], logs[on_line, 1], 1)
        above = logs[:, 1] - fitted(logs[:, 0])
        found.append(np.expm1(above[ours].mean() - (above[theirs].mean() if baseline else 0.0)))
    if not np.isfinite(found).all():
        raise ExperimentError("ranks that do not vary, or runs at one mean rank, make no line: give more clips")
    return by_seed(found)


def _at_start(scores: Mapping[str, Scores], system: str, baseline: str = "") -> Difference:
    """`at_equal_rank` on from ML-CLAP: the line is of its runs at all rates and starts."""
    every, chosen = by_run(scores["every start"]), by_run(scores["starts"])
    runs = [every[every["system"] == "ml-clap"], chosen[chosen["system"] != "ml-clap"]]
    return at_equal_rank(pd.concat(runs), ["ml-clap"], system, baseline)


def worth_of_steps(table: pd.DataFrame, baseline: str = "ml-clap") -> pd.DataFrame:
    """How many steps of the baseline a step of each system is worth, see `doublings`.

    Returns:
        A row a system: value, low, high (95 % over seeds, on the logarithm), "fit" (R² of all seeds' curves).
    """
    shifts, fit = doublings(table, baseline)
    of_seeds = [by_seed(column) for _, column in shifts.items()]
    powers = [2.0 ** np.array([each.value, each.low, each.high]) for each in of_seeds]
    found = pd.DataFrame([(1.0, np.nan, np.nan), *powers], columns=["value", "low", "high"])
    return found.assign(system=[baseline, *shifts], fit=fit)[["system", "value", "low", "high", "fit"]]


def doublings(table: pd.DataFrame, baseline: str = "ml-clap") -> tuple[pd.DataFrame, float]:
    """By how much log₂ of a system's steps has to grow so that one parabola goes through its runs and the baseline's.

    table: a row a run: system, seed, steps, T2A R@1.

    Returns:
        A row a seed, a column a system but the baseline; and R² of all seeds' parabolas.
    """
    others = [name for name in dict.fromkeys(table["system"]) if name != baseline]
    shifts, left = {}, 0.0
    for seed, rows in table.groupby("seed"):
        steps, scores = np.log2(rows["steps"].to_numpy(float)), rows["T2A R@1"].to_numpy(float)
        is_other = np.stack([(rows["system"] == name).to_numpy(float) for name in others])

        def misses(by: np.ndarray, steps=steps, scores=scores, is_other=is_other) -> np.ndarray:
            moved = steps + by @ is_other
            return scores - np.polynomial.Polynomial.fit(moved, scores, 2)(moved)

        best = least_squares(misses, np.ones(len(others)))
        shifts[seed] = best.x
        left += 2 * best.cost
    fit = 1 - left / table.groupby("seed")["T2A R@1"].apply(lambda values: values.var(ddof=0) * len(values)).sum()
    return pd.DataFrame.from_dict(shifts, orient="index", columns=others), fit


def _languages_over_captions(given: Mapping[str, Scores]) -> Difference:
    """By how many doublings of steps more all of as many languages are worth than all of as many English captions."""
    table = given["texts"].table.query("language == 'eng'")
    most = table.loc[table["texts"] == "captions", "K"].max()
    alike = table[table["K"] == most].groupby("texts")
    found = {kind: doublings(rows, baseline="one")[0]["all"].to_numpy() for kind, rows in alike}
    if len(found) < 2:
        raise ExperimentError(
            f"{most} captions of a clip are compared with as many languages: give clips captions in them"
        )
    return by_seed(found["languages"] - found["captions"])


STARTS = ("every start", "starts")
MEASURES: Mapping[str, Measure] = {
    "evenness-cacl-start": Measure(STARTS, partial(_at_start, system="cacl")),
    "evenness-kcl-start": Measure(STARTS, partial(_at_start, system="kcl")),
    "evenness-kcl-cacl-start": Measure(STARTS, partial(_at_start, system="kcl", baseline="cacl")),
    "languages-over-captions": Measure(("texts",), _languages_over_captions),
}


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
    """How much nearer captions in the European languages lie to the English ones than Japanese and Chinese ones do."""
    if missing := [code for code in (*WEST, *EAST) if code not in cosines]:
        raise LanguagesError(
            f"this is about {', '.join((*WEST, *EAST))}, and the captions are in {', '.join(cosines)} alone: it needs "
            f"{' and '.join(f'captions.{code}.csv' for code in missing)} beside captions.csv"
        )
    west, east = (np.mean([cosines[code] for code in side], axis=0) for side in (WEST, EAST))
    return by_clip(west - east)


# ---------------------------------------------------------------- experiments of chapter 3


def by_count(scores: Scores) -> pd.DataFrame:
    """Scores apart for languages that were trained on and those that were not: columns K, seed, group and the metrics.

    scores: of an experiment whose trials differ by K, train on `overrides["languages"]`, and have a seed each.
    """
    rows, metrics = [], list(next(iter(scores.clips.values())))
    for trial in scores.experiment.trials:
        found = scores.table[(scores.table["K"] == trial.where["K"]) & (scores.table["order"] == trial.where["order"])]
        found, trained = found.set_index("language")[metrics], trial.overrides["languages"]
        others = [code for code in found.index if code not in trained]
        groups = {"English": ["eng"], "trained on": list(trained[1:]), "never trained on": others}
        groups["all eight"] = list(found.index)
        head = {"K": trial.where["K"], "seed": trial.where["order"]}
        rows += [{**head, "group": name, **found.loc[codes].mean()} for name, codes in groups.items() if codes]
    return pd.DataFrame(rows)


def rates_table(validation: Scores) -> pd.DataFrame:
    """A row a telling, start, scheme and rate of the validation: telling, start, system, lr, `valid R@1` (a fraction:
    mean over languages and seeds) and `chosen`: the best of its telling, start and scheme.

    English alone must not choose: a scheme that reads it more often than others would get the rate that suits English.
    """
    keys = ["telling", "start", "system"]
    table = validation.table.groupby([*keys, "lr"], sort=False)["R@1"].mean().rename("valid R@1").reset_index()
    return table.assign(chosen=table.index.isin(table.groupby(keys, sort=False)["valid R@1"].idxmax()))


def stages(scores: Scores, validation: Scores) -> dict[tuple[str, str], Scores]:
    """Each telling and start, those of the paper first, every scheme at the rate that did best on validation:
    experiments in which nothing varies. None where either was not computed.
    """
    found: dict[tuple[str, str], Scores] = {}
    if not (scores and validation):
        return found
    best = rates_table(validation).query("chosen")
    for (telling, start), rows in best.groupby(["telling", "start"], sort=False):
        where = {"telling": telling, "start": start}
        at = [(row.system, {**where, "lr": row.lr}) for row in rows.itertuples()]
        found[telling, start] = reduce(add, [scores.placed([system], {}, at=point) for system, point in at])
    return found


# ---------------------------------------------------------------- captions of stamps


def event_captions(stamps: Stamps, events: Sequence[Event], language: str) -> pd.DataFrame:
    """The caption of the first recording of each event that has one in a language: event number → text, code.

    code "zh_TW": in the traditional script, because the simplified one is missing.
    """
    captions = _captions(stamps, language).set_index("stamp")[["text", "code"]]
    found = {}
    for number, event in enumerate(events):
        known = [stamp for stamp in event.recordings or (event.name,) if stamp in captions.index]
        found |= {number: known[0]} if known else {}
    return captions.loc[list(found.values())].set_axis(list(found), axis=0)


def _captions(stamps: Stamps, language: str) -> pd.DataFrame:
    """One caption a stamp in a language."""
    return stamps.captions[stamps.captions["language"] == language].drop_duplicates("stamp")


def coverage(stamps: Stamps, events: Sequence[Event], languages: Sequence[str]) -> pd.DataFrame:
    """What translations are missing: a row a language, how many of all stamps and of the bank's events have one."""
    total, rows = stamps.captions["stamp"].nunique(), []
    for language in languages:
        captions, ours = _captions(stamps, language), len(event_captions(stamps, events, language))
        traditional = int((captions["code"] == "zh_TW").sum())
        rows.append((language, len(captions), total - len(captions), traditional, ours, len(events) - ours))
    columns = ["language", "stamps", "without", "traditional instead", "our events", "without it"]
    return pd.DataFrame(rows, columns=columns)


def zero_shot_stamps(runs: Runs, data: World, stamps: Stamps, languages: Sequence[str]) -> pd.DataFrame:
    """Single-event clips classified by the stamps' captions: columns system, seed, language, event, accuracy, chance.

    Only events that have a caption in the language are candidates, and only their clips count.
    """
    texts = {language: event_captions(stamps, data.bank.events, language)["text"] for language in languages}
    tables = in_threads([partial(_accuracies, run.model, data.singles, texts) for run in runs.values()])
    found = [table.assign(system=system, seed=seed) for (system, seed), table in zip(runs, tables, strict=True)]
    return pd.concat(found, ignore_index=True)[["system", "seed", "language", "event", "accuracy", "chance"]]


def _accuracies(model: nn.Module, clips: Clips, texts: Mapping[str, pd.Series]) -> pd.DataFrame:
    """One run's accuracy on each event in each language; texts: language → event number → caption."""
    audio, labels, tables = embed_audio(model, clips, batch_size=512), clips.labels, []
    for language, captions in texts.items():
        numbers, text = torch.tensor(captions.index), embed_texts(model, list(captions), language=language)
        rows = torch.isin(labels, numbers)
        right = numbers[zero_shot_predictions(audio[rows], text)] == labels[rows]
        table = pd.DataFrame({"event": labels[rows].numpy(), "accuracy": right.double().numpy()})
        table = table.groupby("event", as_index=False).mean()
        tables.append(table.assign(language=language, chance=1 / len(numbers)))
    return pd.concat(tables, ignore_index=True)


def of_groups(table: pd.DataFrame, pairs: Sequence[tuple[str, str | None]]) -> pd.DataFrame:
    """What systems have over others in accuracy (or where they stand, over None), over seeds and events, in the mean
    over each of GROUPS.

    table: of `zero_shot_stamps`; pairs: system and baseline.

    Returns:
        Columns languages, system, baseline, metric, and those of `lab.comparisons.differences`.
    """
    keys = [table["language"].map(GROUPS), "system"]
    values = {
        key: rows.pivot_table(index="seed", columns="event", values="accuracy")
        for key, rows in table.groupby(keys, sort=False)
    }
    found = []
    for group in dict.fromkeys(group for group, _ in values):
        for system, base in pairs:
            ours, theirs = values[group, system], None
            if base is not None:
                ours, theirs = ours.align(values[group, base], join="inner")
            head = {"languages": group, "system": system, "baseline": base, "metric": "accuracy"}
            found.append((head, difference(ours, theirs)))
    return differences(found)
