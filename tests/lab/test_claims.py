"""Claims as data: what a file may say, what the papers' numbers are, and how a chapter judges."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from pullpush.errors import UnknownNameError
from pullpush.lab import claims, ledger as ledgers
from pullpush.lab.paper import paper_table
from pullpush.lab.root import find_root
from pullpush.metrics.inference import difference

PAPERS = sorted(path.stem for path in (find_root() / "book" / "claims").glob("*.yaml"))
MEASURED = {"chapter": "c", "measure": "m"}
CLAIM = {"id": "supclap-a", "claim": "It helps.", "source": "Table 1", "direction": "higher", "unit": "points"}
CLAIM |= {"judged": MEASURED}
GAIN = {"table": 1, "where": {"dataset": "AudioCaps", "task": "T2A", "metric": "R@1"}}
GAIN |= {"system": "InfoNCE + bi-DynamicSVR", "minus": "InfoNCE"}
LEAVE_OUT = object()


def write(folder: Path, *items: dict, paper: str = "supclap", **head) -> Path:
    text = {"paper": paper, "title": "T", "cite": paper, **head, "claims": list(items)}
    (folder / f"{paper}.yaml").write_text(yaml.safe_dump(text, allow_unicode=True), "utf-8")
    return folder


def changed(**fields) -> dict:
    return {key: value for key, value in {**CLAIM, **fields}.items() if value is not LEAVE_OUT}


def value(folder: Path, given: dict, **fields) -> float | None:
    (claim,) = claims.load("supclap", folder=write(folder, changed(value=given, **fields)))
    return claims.paper_value(claim)


def cell(table: int, system: str, **where: str) -> float:
    """The oracle: the mean of the matching cells, by query."""
    rows = paper_table("supclap", table).query("system == @system")
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    assert len(rows)
    return rows["value"].mean()


# ---------------------------------------------------------------- the schema


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": LEAVE_OUT}, "source: Field required"),
        ({"source": ["Table 1", "somewhere"]}, "has no source that can be found"),
        ({"reason": {"why": "No data."}}, "needs exactly one of judged and reason"),
        ({"judged": LEAVE_OUT}, "needs exactly one of judged and reason"),
        ({"verdict": "holds"}, "verdict: Unexpected keyword argument"),
        ({"judged": {**MEASURED, "seed": 1}}, "judged: seed: Extra inputs are not permitted"),
        ({"judged": {"measure": "m"}}, "judged needs a chapter"),
        ({"judged": {"chapter": "c", "experiment": "e"}}, "judged needs either experiment, system and metric, or"),
        ({"judged": {**MEASURED, "metric": "R@1"}}, "judged needs either experiment, system and metric, or"),
        ({"judged": "c"}, "judged: Input should be a valid dictionary"),
        ({"judged": LEAVE_OUT, "reason": {"chapter": "c"}}, "reason needs a why"),
        ({"value": {**GAIN, "row": 1}}, "value: row: Extra inputs are not permitted"),
        ({"value": {**GAIN, "table": [1]}}, "value: table: Input should be a valid integer"),
        ({"value": {**GAIN, "where": [1]}}, "value: where: Input should be a valid dictionary"),
        ({"judged": {**MEASURED, "where": "text"}}, "judged: where: Input should be a valid dictionary"),
        ({"judged": {**MEASURED, "chapter": 5}}, "judged: chapter: Input should be a valid string"),
        ({"margin": True}, "margin: Input should be a valid number"),
        ({"value": {"system": "InfoNCE"}}, "value needs a table"),
        ({"value": {**GAIN, "over": "InfoNCE"}}, "not both of minus and over"),
        ({"value": {"table": 1, "at": {"metric": "R@1"}, "minus": "InfoNCE"}}, "name a system only beside `system`"),
        ({"direction": "up"}, "direction: Input should be 'higher', 'lower', 'equal' or 'exists'"),
        ({"evidence": "identity"}, "needs a note that says why it cannot fail"),
        ({"evidence": "proof"}, "evidence: Input should be 'runs', 'count' or 'identity'"),
        ({"direction": "equal"}, "direction: equal needs a margin"),
        ({"direction": "equal", "margin": 0}, "margin: Input should be greater than 0"),
        ({"unit": LEAVE_OUT}, "has a number and no unit"),
        ({"claim": ""}, "claim: String should have at least 1 character"),
        ({"id": "atri-a"}, "the id must start with supclap-"),
    ],
)
def test_a_claim_that_is_not_well_written_is_refused_with_file_and_id(tmp_path, fields, message):
    with pytest.raises(claims.ClaimError, match=rf"supclap\.yaml: {fields.get('id', 'supclap-a')}: .*{message}"):
        claims.load("supclap", folder=write(tmp_path, changed(**fields)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**GAIN, "system": "InfoNCE + bi-DynamicSRV"}, "has no system .*nearest: .*'InfoNCE . bi-DynamicSVR'"),
        ({**GAIN, "minus": "InfoNCe"}, "no system InfoNCe: nearest: .*'InfoNCE'"),
        ({**GAIN, "where": {"metric": "R@2"}}, "has no metric R@2: nearest: .*'R@1'"),
        ({**GAIN, "where": {"task": ["T2A", "T2B"]}}, "has no task T2A, T2B: nearest: .*'T2A'"),
        ({**GAIN, "where": {"colour": "red"}}, "no column 'colour': use one of paper, table, system"),
        ({**GAIN, "where": {"note": "absent"}}, "has no note absent"),
        ({**GAIN, "note_contains": "runs=7"}, "has no note_contains runs=7"),
        ({**GAIN, "table": 99}, "no table supclap_table99"),
        (
            {"table": 2, "system": "AudioCLIP", "minus": "CLAP", "where": {"dataset": "VGGSound"}},
            "no row with a number",
        ),
        ({"table": 2, "system": "InfoNCE", "minus": "AudioCLIP"}, "3 rows minus 2: narrow `where`"),
    ],
)
def test_a_value_that_is_not_in_the_tables_names_what_is_near(tmp_path, given, message):
    with pytest.raises(claims.ClaimError, match=rf"supclap\.yaml: supclap-a: value: .*{message}"):
        value(tmp_path, given)


def test_a_file_with_a_wrong_head_or_no_yaml_is_refused(tmp_path):
    with pytest.raises(claims.ClaimError, match=r"supclap\.yaml: paper is 'atri': name it as the file"):
        claims.load("supclap", folder=write(tmp_path, CLAIM) and _renamed(tmp_path, "paper: supclap", "paper: atri"))
    with pytest.raises(claims.ClaimError, match="needs the texts paper, title and cite, a list of claims"):
        claims.load("supclap", folder=write(tmp_path, CLAIM, year=2025))
    (tmp_path / "supclap.yaml").write_text("paper: [", "utf-8")
    with pytest.raises(claims.ClaimError, match=r"supclap\.yaml: no YAML"):
        claims.load("supclap", folder=tmp_path)
    (tmp_path / "supclap.yaml").write_bytes("title: é".encode("latin-1"))
    with pytest.raises(claims.ClaimError, match=r"supclap\.yaml: no YAML in UTF-8"):
        claims.load("supclap", folder=tmp_path)
    with pytest.raises(claims.ClaimError, match=r"supclap\.yaml: needs the texts paper, title and cite, a list"):
        claims.load("supclap", folder=write(tmp_path) and _renamed(tmp_path, "claims: []", "claims: 5"))
    with pytest.raises(claims.ClaimError, match=r"a claim must be a mapping with an id, got 'words'"):
        claims.load("supclap", folder=write(tmp_path, "words"))


def _renamed(folder: Path, old: str, new: str) -> Path:
    path = folder / "supclap.yaml"
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    return folder


def test_an_id_stands_once_in_a_file_and_over_all_files(tmp_path):
    with pytest.raises(claims.ClaimError, match=r"supclap\.yaml: supclap-a: this id stands twice"):
        claims.load("supclap", folder=write(tmp_path, CLAIM, CLAIM))
    write(tmp_path, changed(id="a-b-c"), paper="a")
    write(tmp_path, changed(id="a-b-c"), paper="a_b")
    (tmp_path / "supclap.yaml").unlink()
    with pytest.raises(claims.ClaimError, match=r"a_b\.yaml: a-b-c: this id stands twice \(also in a\.yaml\)"):
        claims.load_all(folder=tmp_path)


def test_unknown_papers_and_chapters_are_answered_with_the_nearest(tmp_path):
    folder = write(tmp_path, CLAIM)
    with pytest.raises(UnknownNameError, match="did you mean 'supclap'"):
        claims.load("subclap", folder=folder)
    with pytest.raises(UnknownNameError, match="unknown chapter with claims 'd': known: c"):
        claims.of_chapter("d", folder=folder)
    assert claims.of_chapter("c", folder=folder)[0].id == "supclap-a"


# ---------------------------------------------------------------- the paper's numbers


def test_a_difference_is_the_system_minus_the_baseline(tmp_path):
    theirs = {name: cell(1, name, **GAIN["where"]) for name in ("InfoNCE", "InfoNCE + bi-DynamicSVR")}
    assert value(tmp_path, GAIN) == pytest.approx(theirs["InfoNCE + bi-DynamicSVR"] - theirs["InfoNCE"])


def test_a_ratio_is_over_the_baseline_minus_one_and_in_per_cent_where_the_unit_is(tmp_path):
    where = {"dataset": "Clotho", "metric": "GMO_MB"}
    given = {"table": 14, "where": where, "system": "InfoNCE + bi-DynamicSVR", "over": "InfoNCE"}
    ratio = cell(14, "InfoNCE + bi-DynamicSVR", **where) / cell(14, "InfoNCE", **where) - 1
    assert value(tmp_path, given, unit="ratio") == pytest.approx(ratio)
    assert value(tmp_path, given, unit="%") == pytest.approx(100 * ratio)


def test_two_sides_may_differ_in_another_column_or_in_the_note(tmp_path):
    given = {"table": 10, "where": {"dataset": "AudioCaps"}, "at": {"language": "fra"}, "minus": {"language": "zho"}}
    french, chinese = (cell(10, "back-translation", dataset="AudioCaps", language=code) for code in ("fra", "zho"))
    assert value(tmp_path, given) == pytest.approx(french - chinese)
    sides = {"at": {"note_contains": "alpha=1.0;"}, "minus": {"note_contains": ["alpha=0.1;", "multilingual"]}}
    table = paper_table("supclap", 13).query("metric == 'R@1'").groupby("note")["value"].mean()
    assert value(tmp_path, {"table": 13, "where": {"metric": "R@1"}, **sides}) == pytest.approx(
        table.max() - table.min()
    )


def test_a_value_against_the_direction_needs_a_note(tmp_path):
    with pytest.raises(claims.ClaimError, match=r"the paper's value is \+2\.29, but direction is lower"):
        value(tmp_path, GAIN, direction="lower")
    with pytest.raises(claims.ClaimError, match="but direction is equal"):
        value(tmp_path, GAIN, direction="equal", margin=1)
    assert value(tmp_path, GAIN, direction="lower", note="The text says so.") > 0
    assert value(tmp_path, GAIN, direction="equal", margin=3) > 0


# ---------------------------------------------------------------- the papers


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_of_a_paper_loads_and_its_number_agrees_in_sign(paper):
    head = yaml.safe_load((find_root() / "book" / "claims" / f"{paper}.yaml").read_text("utf-8"))
    bibliography = (find_root() / "book" / "references.bib").read_text("utf-8")
    assert f"{{{head['cite']}," in bibliography
    for claim in claims.load(paper):
        number = claims.paper_value(claim)
        if number is not None and not claim.note:
            expected = {"lower": number < 0, "equal": abs(number) <= (claim.margin or np.inf)}
            assert expected.get(claim.direction, number > 0), claim.id


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_is_named_by_a_claim_and_no_others_are(paper):
    """Tables are CSV files, figures stand in `figures.md`."""
    tables = find_root() / "book" / "paper-tables"
    numbers = {path.stem.rpartition("table")[2] for path in tables.glob(f"{paper}_table*.csv")}
    _, _, section = (tables / "figures.md").read_text("utf-8").partition(f"\n## {paper}\n")
    figures = re.findall(r"^\*\*(Figure \d+)", section.partition("\n## ")[0], re.M)
    assert numbers
    named = {source for claim in claims.load(paper) for source in claim.source}
    parts = {f"Table {number}" for number in numbers} | set(figures)
    assert {source for source in named if source.startswith(("Table", "Figure"))} == parts


@pytest.mark.parametrize("paper", PAPERS)
def test_no_claim_types_a_number_of_the_paper(paper):
    """Digits stand only in names (R@1, ESC-50, US8K, Table 3, system 2) and in a count of languages."""
    allowed = re.compile(r"[A-Za-z][A-Za-z@.-]*\d\w*|(Table|Figure|Eq\.|Section) [\d.]+|systems? \d+|\d+ languages")
    for claim in claims.load(paper):
        assert not re.search(r"\d", allowed.sub("", claim.claim)), f"{claim.id}: {claim.claim}"


def test_ids_are_unique_over_all_papers():
    every = [claim.id for claim in claims.load_all()]
    assert len(every) == len(set(every)) >= 60


# ---------------------------------------------------------------- judging


def scores(mean: float, *, seeds: int = 5, clips: int = 40, spread: float = 0.001):
    """A difference of this mean as a fraction, with a small interval."""
    noise = np.random.default_rng(0).normal(0, spread, (seeds, clips))
    return difference(mean + noise - noise.mean())


@pytest.fixture
def ledger(tmp_path) -> ledgers.Ledger:
    contrast = {"chapter": "c", "experiment": "e", "system": "s", "baseline": "b", "metric": "R@1"}
    write(
        tmp_path,
        changed(value=GAIN),
        changed(id="supclap-b", judged={**contrast, "where": {"k": 1}}),
        changed(id="supclap-c", judged={**contrast, "baseline_where": {"k": 2}}, direction="lower"),
        changed(id="supclap-d", judged={"chapter": "c", "measure": "cost"}, direction="equal", margin=5, unit="%"),
        changed(id="supclap-e", judged=LEAVE_OUT, reason={"chapter": "c", "why": "No data."}),
        changed(id="supclap-f", judged={"chapter": "other", "measure": "m"}),
    )
    return ledgers.Ledger("c", folder=tmp_path)


def values(*run, seeds):  # s has 0.02 over b between the points that a claim names
    level = {"s R@1 {'k': 1}": 0.52, "b R@1 {'k': 1}": 0.5, "s R@1 {}": 0.42, "b R@1 {'k': 2}": 0.4}
    noise = np.random.default_rng(0).normal(0, 0.001, (len(seeds), 40))
    return level["{} {} {}".format(*run)] + (run[0] == "s") * (noise - noise.mean())


def rows(ledger: ledgers.Ledger) -> pd.DataFrame:
    return ledger.table().set_index("id")


def test_a_chapter_judges_each_of_its_claims_once_and_the_table_holds_them_in_their_units(ledger):
    ledger.judge("supclap-a", scores(0.03))
    ledger.judge_by({"e": SimpleNamespace(seeds=lambda *run: range(5), values=values)}, {}, "e")
    ledger.judge("cost", scores(0.01))
    ledger.check()
    table = rows(ledger)
    assert list(ledger.table().columns) == ledgers.COLUMNS
    assert list(table["verdict"]) == ["holds", "holds", "reversed", "holds", "–"]
    assert table.loc[["supclap-a", "supclap-b", "supclap-c"], "value"].tolist() == pytest.approx([3, 2, 2])
    assert table.loc["supclap-a", "paper_value"] == pytest.approx(2.29)
    assert table.loc["supclap-a", "half_width"] == pytest.approx(100 * scores(0.03).half_width)
    assert table.loc["supclap-a", ["seeds", "clips"]].tolist() == [5, 40]
    assert table.loc["supclap-e", "reason"] == "No data."


def test_a_claim_judged_nowhere_or_twice_fails_the_check_by_name(ledger):
    ledger.judge("m", scores(0.03))
    ledger.judge("supclap-a", scores(0.03))  # a cell that ran again
    ledger.judge_by({"e": SimpleNamespace(seeds=lambda *run: range(5), values=values)}, {}, "m")  # that no claim needs
    with pytest.raises(claims.ClaimError, match="c: judged nowhere: supclap-b, supclap-c, supclap-d: judge each"):
        ledger.check()
    ledger.judge_by({"e": SimpleNamespace(seeds=lambda *run: range(5), values=values)}, {}, "e")
    ledger.leave("cost", "Not in this profile.")
    ledger.check()
    ledger.judge("supclap-a", scores(0.04))
    with pytest.raises(claims.ClaimError, match="c: judged twice: supclap-a: judge each claim once"):
        ledger.check()


def test_what_is_left_keeps_its_reason_and_no_verdict(ledger):
    for name in ("supclap-a", "e", "cost"):
        ledger.leave(name, "Own data.")
    ledger.check()
    table = rows(ledger)
    assert set(table["verdict"]) == {"–"}
    assert table["value"].isna().all()
    assert ledgers.sentence(ledger.table().iloc[0]) == "**is not measured here**: Own data."


def test_names_that_nothing_is_judged_by_are_refused(ledger):
    with pytest.raises(UnknownNameError, match="did you mean 'supclap-a'"):
        ledger.judge("supclap-aa", scores(0.01))
    with pytest.raises(UnknownNameError, match="claim or measure to judge in c"):
        ledger.judge("supclap-e", scores(0.01))  # it has a reason
    with pytest.raises(UnknownNameError, match="claim or measure to judge in c"):
        ledger.judge("e", scores(0.01))
    with pytest.raises(UnknownNameError, match="claim or measure or experiment to judge in c"):
        ledger.leave("ee", "Own data.")


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
        (0.023, 0.001, "holds"),
        (0.02, 0.001, "holds, smaller"),  # 2.29 points in the paper
        (-0.02, 0.001, "reversed"),
        (0.0, 0.004, "no effect"),  # within half a point
        (0.0, 0.5, "cannot tell"),
    ],
)
def test_the_verdict_follows_from_the_interval_and_the_papers_number(ledger, mean, spread, verdict):
    ledger.judge("m", scores(mean, spread=spread))
    assert rows(ledger).loc["supclap-a", "verdict"] == verdict


@pytest.mark.parametrize(("mean", "verdict"), [(0.04, "holds"), (0.05, "cannot tell"), (-0.2, "reversed")])
def test_equality_is_judged_by_the_margin_in_the_unit_of_the_claim(ledger, mean, verdict):
    ledger.judge("cost", scores(mean))
    assert rows(ledger).loc["supclap-d", "verdict"] == verdict


@pytest.mark.parametrize(
    ("evidence", "verdict"), [("runs", "cannot tell"), ("count", "holds"), ("identity", "cannot fail")]
)
def test_equal_numbers_are_evidence_where_they_were_counted_and_a_test_where_they_must_be(tmp_path, evidence, verdict):
    item = changed(direction="exists", unit="cosine", evidence=evidence, note="A length.")
    write(tmp_path, item)
    ledger = ledgers.Ledger("c", folder=tmp_path)
    ledger.judge("m", difference(np.full((3, 1), 0.3)))
    assert rows(ledger).loc["supclap-a", "verdict"] == verdict


def test_a_verdict_is_withheld_with_its_reason_and_the_number_stays(tmp_path):
    write(tmp_path, changed(withheld="At the floor."), changed(id="supclap-b", judged={"chapter": "c", "measure": "n"}))
    ledger = ledgers.Ledger("c", folder=tmp_path)
    ledger.judge("m", scores(0.3))
    ledger.judge("n", scores(0.3))
    table = rows(ledger)
    assert table.loc["supclap-a", ["verdict", "reason"]].tolist() == ["–", "At the floor."]
    assert table.loc["supclap-a", "value"] == pytest.approx(30)
    assert table.loc["supclap-b", "p_holm"] == pytest.approx(table.loc["supclap-b", "p"]), "is of no family"


def test_what_cannot_fail_is_told_where_it_does(tmp_path):
    write(tmp_path, changed(direction="equal", margin=1, evidence="identity", note="A length."))
    ledger = ledgers.Ledger("c", folder=tmp_path)
    ledger.judge("m", scores(0.3))
    assert rows(ledger).loc["supclap-a", "verdict"] == "reversed"


def test_a_family_goes_over_chapters(tmp_path):
    elsewhere = changed(id="supclap-b", judged={"chapter": "d", "measure": "m"})
    other = changed(id="supclap-c", judged={"chapter": "d", "measure": "n"}, family="Table 1, in training")
    write(tmp_path, changed(), elsewhere, other)
    published = pd.DataFrame({"id": ["supclap-a", "supclap-b", "supclap-c"], "p": [0.9, 0.5, 1e-9]})
    ledger = ledgers.Ledger("c", folder=tmp_path, published=published)
    ledger.judge("m", scores(0.3))
    row = rows(ledger).loc["supclap-a"]
    assert row["p_holm"] == pytest.approx(2 * row["p"])


def test_holm_adjusts_within_a_source_and_can_take_a_verdict_back(tmp_path):
    names = [f"supclap-{letter}" for letter in "abcde"]
    items = [changed(id=name, judged={"chapter": "c", "measure": name}) for name in names]
    write(tmp_path, *items, changed(id="supclap-z", source="Table 2", judged={"chapter": "c", "measure": "z"}))
    ledger = ledgers.Ledger("c", folder=tmp_path)
    noise = np.array([[-1.0], [0.0], [1.0], [0.5], [-0.5]])
    weak = difference((noise + 1.2) / 100)
    assert 0.01 < weak.p < 0.05
    for name in [*names, "z"]:
        ledger.judge(name, weak)
    table = rows(ledger)
    assert table.loc["supclap-a", "p_holm"] == pytest.approx(5 * weak.p)
    assert table.loc["supclap-a", "verdict"] == "cannot tell"
    assert table.loc["supclap-z", ["p_holm", "verdict"]].tolist() == [pytest.approx(weak.p), "holds"]


# ---------------------------------------------------------------- words


def test_a_sentence_gives_verdict_estimate_half_width_and_the_papers_number():
    row = {"verdict": "holds", "low": 2.1, "high": 4.3, "value": 3.2, "half_width": 1.1}
    row |= {"unit": "points", "paper_value": 2.7, "direction": "higher"}
    assert ledgers.sentence(row) == "**holds**: +3.2 ± 1.1 points (paper +2.7)"
    row |= {"verdict": "reversed", "value": -0.123, "low": -0.16, "high": -0.08, "half_width": 0.04, "unit": "ratio"}
    assert ledgers.sentence(row | {"paper_value": np.nan}) == "**is reversed**: −0.12 ± 0.04"


@pytest.mark.parametrize(("paper", "short"), [(0.9, False), (1.1, True), (-0.4, False), (-0.6, True), (np.nan, False)])
def test_what_cannot_be_told_may_fall_short_of_the_paper(paper, short):
    row = {"verdict": "cannot tell", "paper_value": paper, "value": 0.25, "low": -0.5, "high": 1.0, "half_width": 0.75}
    row |= {"direction": "lower" if paper < 0 else "exists"}
    assert not ledgers.falls_short(row | {"paper_value": -paper}), "a number against the claim is nothing to reach"
    assert ledgers.falls_short(row) == short == ("yet falls short" in ledgers.sentence(row | {"unit": ""}))
    assert not ledgers.falls_short(row | {"verdict": "no effect"})
