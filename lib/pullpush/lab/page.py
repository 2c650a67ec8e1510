"""What a lab's page does with an experiment: run it or read it, say whence, show its table and figure, judge claims.

    page = Page(ground, measures.MEASURES)
    taught = page.run(of_teachers)
    page.table("teachers", taught, SCORES, pairs=[("ensemble", "none")], number="6L.7", caption="…", alt="…")
    page.every_claim("6L.13")

Where a long experiment was not kept for a reader's parameters the page says so in its place, and goes on: see gaps.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd
from IPython.display import display

from pullpush.errors import UnknownNameError
from pullpush.lab import compute, evidence, gaps
from pullpush.lab.comparisons import Pair, Wheres, gains, levels, shown
from pullpush.lab.compute import Ground
from pullpush.lab.experiments import Experiment
from pullpush.lab.ledger import Ledger, Measure
from pullpush.lab.scores import Scores
from pullpush.show import captions, layout, palette, tables
from pullpush.show.forest import claim_forest
from pullpush.show.intervals import intervals


class Page:
    """One lab: its experiments, its claims, and what was shown of them.

    Args:
        ground: what its experiments stand on; its session says where tables go.
        measures: name that claims give in `measure` → what judges them, as soon as the experiments it needs are there.
    """

    def __init__(self, ground: Ground, measures: Mapping[str, Measure] | None = None) -> None:
        self.ground, self.book = ground, ground.book
        self.scores: dict[str, Scores] = {}
        self._measures = measures or {}
        self._listed: set[str] = set()
        palette.use_style()
        gaps.expect()

    @cached_property
    def ledger(self) -> Ledger:
        """The claims of its chapter; UnknownNameError if there are none."""
        return Ledger(self.book.chapter)

    def run(
        self,
        experiment: Experiment,
        *,
        otherwise: Scores | Experiment | None = None,
        beside: Scores | None = None,
        chapter: str = "",
    ) -> Scores:
        """What an experiment finds, computed or read; says whence it comes, and judges the claims that name it.

        Args:
            otherwise: what stands in where it takes long and was not kept, fewer seeds of the same; an experiment is
                run only then. beside: runs of another experiment that this one does not repeat; they come first.
            chapter: where it was kept, if another declares it.

        Raises:
            NotKeptError: it takes long and was not kept for these parameters; the page says so and goes on.
        """
        scores = compute.run(self.ground, experiment, chapter)
        if scores.stored and (scores or otherwise is not None):
            display(evidence.origin(scores))
        if scores and beside is not None:
            scores = beside + scores
        elif not scores and otherwise is not None:
            scores = compute.run(self.ground, otherwise) if isinstance(otherwise, Experiment) else otherwise
        self.judge(scores, experiment.name)
        if not scores:
            raise gaps.NotKeptError(evidence.not_kept(scores))
        return scores

    def judge(self, scores: Scores, name: str) -> None:
        """Judge the claims that need an experiment, or whose measure does, by what was found of it or a part.

        `run` does, by all that it gives.
        """
        self.scores[name] = scores
        try:
            ledger = self.ledger
        except UnknownNameError:  # a chapter about no paper
            return
        ledger.judge_by(self.scores, self._measures, name)

    def show(
        self,
        table: pd.DataFrame,
        name: str,
        shown: pd.DataFrame | None = None,
        *,
        formats: Mapping[str, str] | None = None,
    ) -> None:
        """Save a table under a name and display it; shown: in this form, as text."""
        self.book.save(table, name)
        display(tables.styled(table if shown is None else shown, formats=formats))

    def table(
        self,
        name: str,
        scores: Scores,
        metrics: Sequence[str],
        *,
        pairs: Iterable[Pair] = (),
        wheres: Wheres | None = None,
        across: str = "metric",
        number: str = "",
        caption: str = "",
        alt: str = "",
        paper: str = "",
        **drawn: Any,
    ) -> pd.DataFrame:
        """A table of a paper or of this book: saved, printed, drawn, and the claims judged so far listed under it.

        Args:
            name: of the saved table.
            scores: what `run` gave.
            metrics, pairs, wheres: what systems have over baselines at these points; without pairs, where they stand.
            across: the column whose values stand side by side in print.
            number, caption, alt, paper: of the figure, see `captions.figure`; without a number there is none.
            drawn: how, see `show.intervals.intervals`.
        """
        pairs = list(pairs)
        table = gains(scores, pairs, metrics, wheres or ({},)) if pairs else levels(scores, metrics, wheres)
        self.show(table, name, shown(table, across=across))
        if number:
            drawn.setdefault("xlabel", "gain (points)" if pairs else "%")
            self.figure(intervals(table, **drawn), number, caption, alt=alt, paper=paper)
        self.verdicts()
        return table

    figure = staticmethod(captions.figure)  # a figure with its number and caption

    def verdicts(self, *sources: str) -> None:
        """List the claims that were judged and not listed yet, but those whose family is not complete.

        The verdict on a claim depends on all p values of its family, see `Claim.within`.

        sources: those alone that stand first in one of these places, such as "Table 1", or are of a family so named.
        """
        waiting = {claim.within for claim in self.ledger.open}
        ready = [
            claim.id
            for claim in self.ledger.judged
            if claim.id not in self._listed and claim.within not in waiting
            if not sources or {claim.source[0], claim.family} & {*sources}
        ]
        if ready:
            self._listed |= set(ready)
            display(evidence.verdicts(self.ledger, *ready))

    def every_claim(self, number: str = "") -> None:
        """The last section: all claims with what was measured of each, saved as "claims", and their forest.

        number: of the figure; without one there is none.

        Raises:
            ClaimError: one is judged nowhere, or twice with different outcomes.
        """
        self.ledger.check()
        judged = self.ledger.table()
        self.book.save(judged, "claims")
        if number:
            seeds = judged["seeds"].dropna()
            over = f"; {layout.span(seeds)} seeds" if len(seeds) else ""
            caption = f"All claims that this lab judges: what was measured, and what the paper prints{over}."
            alt = "A forest of claims with intervals, coloured by verdict, with diamonds for the paper's numbers."
            self.figure(claim_forest(judged), number, caption, alt=alt)
        display(evidence.ledger(self.ledger))
