"""Single clips whose rank varies most over the languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.metrics import language_ranks, rank_variance
from pullpush.show.palette import method_name
from pullpush.studies.consistency.space import Space, ranks


def case_ranks(
    spaces: Mapping[tuple[str, int], Space],
    seed: int,
    systems: Sequence[str] = ("ml-clap", "kcl"),
    languages: Sequence[str] = LANGUAGES,
) -> pd.DataFrame:
    """Table 5: ranks of the `worst_cases` of a seed's runs, first captions: columns worst of, clip, system, language,
    rank.
    """
    cases = worst_cases({system: spaces[system, seed] for system in systems})
    rows = []
    for worst, clip in cases.items():
        for (system, run_seed), space in spaces.items():
            if run_seed == seed:
                places = ranks(space)[clip * space.texts.shape[1]].tolist()
                rows += [(worst, clip, system, *pair) for pair in zip(languages, places, strict=False)]
    return pd.DataFrame(rows, columns=["worst of", "clip", "system", "language", "rank"])


def worst_cases(spaces: Mapping[str, Space]) -> dict[str, int]:
    """For each system the clip whose first caption's rank varies most over the languages; no clip twice."""
    cases: dict[str, int] = {}
    for system, space in spaces.items():
        order = rank_variance(language_ranks(space.audio, space.texts[:, 0])).argsort(descending=True).tolist()
        cases[system] = next(clip for clip in order if clip not in cases.values())
    return cases


def ranks_of(table: pd.DataFrame, worst: str) -> tuple[int, dict[str, list[int]]]:
    """The clip that is the most uneven of a system, and each system's ranks of it by its printed name."""
    rows = table[table["worst of"] == worst]
    by_system = rows.groupby("system", sort=False)["rank"].apply(list)
    return rows["clip"].iloc[0], {method_name(system): places for system, places in by_system.items()}


def typical_case(space: Space) -> int:
    """The clip whose first caption's rank varies over the languages as much as that of the median clip."""
    order = rank_variance(language_ranks(space.audio, space.texts[:, 0])).argsort(stable=True)
    return int(order[len(order) // 2])


def clip_ranks(spaces: Mapping[str, Space], clip: int) -> dict[str, list[int]]:
    """Ranks of a clip for its first caption in each language, by the printed names of the systems."""
    return {
        method_name(system): language_ranks(space.audio, space.texts[:, 0])[clip].tolist()
        for system, space in spaces.items()
    }
