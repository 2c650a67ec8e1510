"""A page says where stored numbers come from, and every claim has its verdict or its reason."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from pullpush.errors import UnknownNameError
from pullpush.lab import evidence
from pullpush.lab.experiments import Experiment
from pullpush.lab.ledger import Ledger, sentence
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.metrics import difference


def scores(*, stored: bool = True, stale: tuple[str, ...] = (), empty: bool = False) -> Scores:
    experiment = Experiment.of("radius", {"one": ("infonce", {})}, seeds=(0, 1, 2), long=True)
    clips = {} if empty else {("one", seed): {"R@1": np.ones(2)} for seed in range(3)}
    made = Stamp("2026-07-12 10:03", "pullpush sweep 02-svr --only radius", (0, 1, 2, 7), 7260.0, {"losses/svr": "1"})
    none = pd.DataFrame()
    return Scores(experiment, clips, none, none, made, stored=stored, stale=stale)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    claims = [
        {"id": "supclap-a", "source": "Table 1", "judged": {"chapter": "c", "measure": "gain"}, "unit": "points"},
        {
            "id": "supclap-b",
            "source": ["Table 1", "Eq. 2"],
            "judged": {"chapter": "c", "measure": "<cost>"},
            "unit": "%",
        },
        {"id": "supclap-c", "source": "Figure 2", "reason": {"chapter": "c", "why": "No data & no time."}},
    ]
    claims = [claim | {"claim": f"This is <{claim['id'][-1]}>.", "direction": "higher"} for claim in claims]
    data = {"paper": "supclap", "title": "t", "cite": "supclap", "claims": claims}
    (tmp_path / "supclap.yaml").write_text(yaml.safe_dump(data))
    ledger = Ledger("c", folder=tmp_path)
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 40))
    ledger.judge("gain", difference(0.03 + noise - noise.mean()))
    ledger.leave("<cost>", "Not in smoke.")
    return ledger


def test_what_was_computed_here_has_no_banner():
    assert evidence.origin(scores(stored=False)).data == ""


def test_what_is_stored_says_when_by_which_seeds_on_what_and_how_to_make_it_again():
    said = evidence.origin(scores()).data
    assert said.startswith("> **Stored, not computed on this page:** 2026-07-12 10:03 UTC, seeds 0–2, 7, 121 minutes")
    assert "on a processor that was not noted. `pullpush sweep 02-svr --only radius` makes it again." in said
    assert "\n" not in said
    on = replace(scores(), stamp=replace(scores().stamp, processor="AMD EPYC, AVX512"))
    assert "121 minutes of training on AMD EPYC, AVX512." in evidence.origin(on).data


@pytest.mark.parametrize(
    ("stale", "says"),
    [
        (("losses/svr",), "**Since then `losses/svr` computes something else:**"),
        (("losses/svr", "training/loop"), "**Since then `losses/svr` and `training/loop` compute something else:**"),
        (tuple(f"m/{k}" for k in range(6)), "`m/0`, `m/1`, `m/2`, `m/3` and 2 more compute something else:**"),
    ],
)
def test_components_that_compute_something_else_are_named_and_the_rest_is_counted(stale, says):
    said = evidence.origin(scores(stale=stale)).data
    assert says in said
    assert all(line.startswith(">") for line in said.splitlines())


def test_what_nobody_kept_says_how_to_get_it():
    said = evidence.origin(scores(empty=True)).data
    assert "was not kept for these parameters and data" in said
    assert "`pullpush sweep 02-svr --only radius`" in said
    unnamed = scores(empty=True)
    assert evidence.origin(replace(unnamed, stamp=replace(unnamed.stamp, command=""))).data.count("`pullpush sweep`")


def test_verdicts_give_claim_source_and_sentence(ledger):
    said = evidence.verdicts(ledger, "supclap-a", "supclap-c").data.splitlines()
    assert said[0] == f"* *This is <a>.* (Table 1) — {sentence(ledger.table().iloc[0])}"
    assert said[1] == "* *This is <c>.* (Figure 2) — **is not measured here**: No data & no time."
    assert [line[12] for line in evidence.verdicts(ledger).data.splitlines()] == ["a", "b"], "all that are judged"
    with pytest.raises(UnknownNameError, match="did you mean 'supclap-a'"):
        evidence.verdicts(ledger, "supclap-aa")


def test_the_closing_table_groups_by_source_counts_verdicts_and_escapes_texts(ledger):
    shown = evidence.ledger(ledger)
    assert re.findall(r"<summary><strong>(.*?)</strong>: (.*?)</summary>", shown.data) == [
        ("Table 1", "1 holds, 1 is not measured here"),
        ("Figure 2", "1 is not measured here"),
    ]
    assert "3 claims: 1 holds; 2 are not measured here." in shown.data
    assert "This is &lt;a&gt;." in shown.data
    assert "No data &amp; no time." in shown.data
    assert "5 × 40" in shown.data
    row = ledger.table().iloc[0]
    assert evidence.estimate(row) in shown.data
    assert repr(shown).splitlines()[0].startswith("supclap-a: holds: +3.0")


def test_an_estimate_has_its_half_width_interval_and_unit():
    row = {"value": -3.21, "low": -4.3, "high": -2.1, "half_width": 1.1, "unit": "points", "paper_value": 2.7}
    assert evidence.estimate(row) == "−3.2 ± 1.1 [−4.3, −2.1] points"
    assert evidence.paper_number(row) == "+2.7 points"
    tiny = {"value": 1.2e-7, "low": 1e-8, "high": 2.3e-7, "half_width": 1.1e-7, "unit": "", "paper_value": np.nan}
    assert evidence.estimate(tiny) == "+1.2e−07 ± 1.1e−07 [+1.0e−08, +2.3e−07]"
    assert evidence.paper_number(tiny) == "–"
