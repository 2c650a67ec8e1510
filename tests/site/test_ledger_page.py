"""The page of all claims gathers every paper, takes verdicts from executions, and needs nothing but itself."""

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from pullpush.lab import claims
from pullpush.lab.ledger import WORDS, Ledger, adjusted_by_family
from pullpush.metrics import difference
from pullpush.site import ledger_page
from pullpush.site.cli import main

JUDGED = {"chapter": "10-tiny", "measure": "gain"}


@pytest.fixture
def book(tiny: Path) -> Path:
    """A tiny book with three claims of two papers: judged, left with a reason, of a chapter that is not there."""
    papers = {
        "supclap": [
            {"id": "supclap-a", "source": "Table 1", "judged": JUDGED, "unit": "points", "direction": "higher"},
            {"id": "supclap-b", "source": ["Figure 2", "Eq. 1"], "reason": {"why": "No <data>."}, "direction": "lower"},
        ],
        "glap": [{"id": "glap-a", "source": "Table 9", "judged": JUDGED | {"chapter": "11-next"}, "unit": "%"}],
    }
    folder = tiny / "book" / "claims"
    folder.mkdir()
    for paper, own in papers.items():
        own = [{"direction": "higher", "claim": f"{one['id']} is <so> & so."} | one for one in own]
        data = {"paper": paper, "title": paper, "cite": paper, "claims": own}
        (folder / f"{paper}.yaml").write_text(yaml.safe_dump(data))
    return tiny


def execute(root: Path, mean: float, *place: str) -> Path:
    """What a chapter's execution saves of its claims."""
    ledger = Ledger("10-tiny", folder=root / "book" / "claims")
    noise = np.random.default_rng(0).normal(0, 0.01, (5, 40))
    ledger.judge("gain", difference(mean + noise - noise.mean()))
    path = root.joinpath("executed", *place, "10-tiny.claims.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    ledger.table().to_csv(path, index=False)
    return path


def test_every_claim_has_a_row_a_verdict_or_a_reason(book):
    table = ledger_page.gathered(book, {"10-tiny": execute(book, 0.03, "quick")}).set_index("id")
    assert [table.index.name, *table.columns][:10] == list(ledger_page.COLUMNS)
    assert table["verdict"].to_dict() == {"glap-a": "–", "supclap-a": "holds", "supclap-b": "–"}
    assert table["reason"].to_dict() == {"glap-a": "chapter not executed", "supclap-a": "", "supclap-b": "No <data>."}
    assert table.loc["supclap-a", "value"] == pytest.approx(3)
    assert table.loc["supclap-b", "source"] == "Figure 2, Eq. 1"
    assert ledger_page.counted(table) == {"glap": {"–": 1}, "supclap": {"holds": 1, "–": 1}}


def test_a_claim_that_came_after_the_execution_says_so(book):
    path = execute(book, 0.03, "quick")
    pd.read_csv(path).query("id != 'supclap-a'").to_csv(path, index=False)
    table = ledger_page.gathered(book, {"10-tiny": path}).set_index("id")
    assert table.loc["supclap-a", "verdict"] == "–"
    assert table.loc["supclap-a", "reason"] == "not among the claims when the chapter was executed"


def test_the_command_prints_every_claim_and_saves_them(book):
    execute(book, -0.03, "local", "smoke")
    done = CliRunner().invoke(main, ["claims", "--profile", "smoke"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    place = lines.index("supclap-a is <so> & so. (Table 1; supclap-a)")
    assert re.fullmatch(r"    is reversed: −3\.0 ± 0\.\d points.*, 10-tiny", lines[place + 1])
    assert lines.index("supclap") < place, "the paper's title comes first"
    assert "supclap: 1 reversed, 1 –" in lines
    path = book / "executed" / "local" / "smoke" / "claims.csv"
    assert lines[-1] == str(path)
    assert list(pd.read_csv(path).columns[:10]) == list(ledger_page.COLUMNS)
    one = CliRunner().invoke(main, ["claims", "--profile", "smoke", "--paper", "sup", "--verdict", "reversed"]).output
    assert "supclap: 1 reversed" in one.splitlines()
    assert "supclap-b" not in one
    unknown = CliRunner().invoke(main, ["claims", "--profile", "smoke", "--paper", "atri"]).output
    assert "unknown paper 'atri'" in unknown
    assert ledger_page.tables_of(book, "smoke").keys() == {"10-tiny"}, "the gathered table is of no chapter"


def test_the_page_escapes_what_claims_say_and_links_chapters_that_are_there(book):
    table = ledger_page.gathered(book, {"10-tiny": execute(book, 0.03, "quick")})
    page = ledger_page.html(table, {"10-tiny"})
    assert page.count("<tr data-") == 3
    assert "supclap-a is &lt;so&gt; &amp; so." in page
    assert "No &lt;data&gt;." in page
    assert page.count('<a href="10-tiny.html">') == 1
    assert "11-next</td>" in page
    assert html.unescape(re.search(r'name="verdict">(.*?)</select>', page)[1]).count("<option") == 3
    assert "http" not in page, "nothing is fetched"
    for name in ledger_page.FILTERS:
        assert f'<select name="{name}">' in page


def test_a_copy_of_the_page_is_completed_and_offers_the_table(book):
    page = book / "book" / "claims.md"
    page.write_text(f"# Every claim\n\n{ledger_page.MARK}\n")
    table = ledger_page.gathered(book, {"10-tiny": execute(book, 0.03, "local", "quick")})
    ledger_page.complete(page, table)
    assert page.read_text().count("<tr data-paper") == 3
    assert "<strong>holds</strong>" in page.read_text()
    assert len(pd.read_csv(page.with_name("claims.csv"))) == 3
    page.write_text(ledger_page.OPEN_MARK)
    ledger_page.complete(page, table.assign(verdict="cannot tell", paper_value=0.2))
    assert re.findall("<code>(.*?)</code>", page.read_text()) == ["supclap-a"], "the one that was measured"


@pytest.mark.parametrize("wanted", [0.9, 0.6, 0.35, 0.01])  # of the half width
def test_what_would_narrow_an_open_claim_follows_from_the_components_of_its_error(wanted):
    rng = np.random.default_rng(0)
    found = difference(sum(rng.normal(0, *of) for of in ((0.02, (6, 1)), (0.03, (1, 80)), (0.1, (6, 80)))))
    parts, row = found.variance, {"verdict": "cannot tell", "half_width": 2.0, "seeds": 6, "clips": 80}
    row |= {"seed_share": parts.shares["seed"], "clip_share": parts.shares["clip"], "margin": 2 * wanted}
    row |= {"direction": "lower", "paper_value": -4 * wanted}
    (told,) = ledger_page.outlook(pd.DataFrame([row, row | {"paper_value": -8.0}, row | {"verdict": "holds"}])).iloc
    by_margin = pd.DataFrame([row | {"paper_value": 9.0}, row | {"direction": "equal", "paper_value": -0.1}])
    assert ledger_page.outlook(by_margin)["wanted"].tolist() == [2 * wanted] * 2, "no number is for the claim"

    def error(seeds: float, clips: float) -> float:  # over what is wanted
        now, then = (parts.seed / s + parts.clip / c + parts.interaction / s / c for s, c in ((6, 80), (seeds, clips)))
        return (then / now) ** 0.5 / wanted

    for number, of in ((told["for_seeds"], lambda n: error(n, 80)), (told["for_clips"], lambda n: error(6, n))):
        assert of(1e9) > 1 if np.isnan(number) else of(number) <= 1 < of(number - 1)
    assert told["wanted"] == 2 * wanted


# What is published


ROOT = Path(__file__).resolve().parents[2]
PAST = {*WORDS, "smaller than in the paper"}  # what a verdict could be
HISTORY = yaml.safe_load((ROOT / "book" / ledger_page.HISTORY).read_text(encoding="utf-8"))


def test_a_claim_whose_test_was_changed_shows_what_it_said_before(book):
    table = ledger_page.gathered(book, {"10-tiny": execute(book, 0.03, "quick")})
    before = {"until": "2026-01-02", "verdict": "reversed", "value": -1.0, "low": -2.0, "high": -0.5, "seeds": 3}
    past = {"first": {"date": "2026-01-01", "seeds": 3}, "before": [{**before, "changed": "quantity", "why": "A <b>."}]}
    page = ledger_page.html(table, history={"supclap-a": past})
    assert "judged since 2026-01-01, 3 seeds" in page
    assert "until 2026-01-02 <strong>reversed</strong>, −1.0 ± 0.8 [−2.0, −0.5]" in page
    assert "then other quantity: A &lt;b&gt;." in page
    assert page.count("<details>") == 1


def test_the_history_tells_of_claims_that_there_are_and_why_each_was_changed():
    assert set(HISTORY) <= {claim.id for claim in claims.load_all()}
    before = [one for each in HISTORY.values() for one in each.get("before", ())]
    assert len(before) > 50
    assert all(len(one["why"]) > 20 and one["verdict"] in PAST for one in before)
    assert HISTORY["supclap-s3-suppression-gains"]["before"][0]["verdict"] == "reversed"


def test_published_verdicts_keep_the_rules():
    """Families over all chapters, no verdict of an interval without width, what cannot fail is no evidence."""
    table = pd.read_csv(ROOT / "executed" / "quick" / "claims.csv").set_index("id")
    every = {claim.id: claim for claim in claims.load_all()}
    measured = table[table["value"].notna()]
    wanted = adjusted_by_family([(every[id], p) for id, p in measured["p"].items()])
    assert measured.loc[list(wanted), "p_holm"].to_numpy() == pytest.approx(list(wanted.values()), rel=1e-4)
    runs = measured[[every[id].evidence == "runs" for id in measured.index]]
    assert set(runs.loc[runs["half_width"] == 0, "verdict"]) <= {"cannot tell"}
    identities = measured[[every[id].evidence == "identity" for id in measured.index]]
    assert not set(identities["verdict"]) & {"holds", "holds, smaller"}
    weak = runs[(runs["p_holm"] >= 0.05) | ((runs["low"] <= 0) & (runs["high"] >= 0))]
    weak = weak[[every[id].direction != "equal" for id in weak.index]]
    assert set(weak["verdict"]) <= {"no effect", "cannot tell", "cannot fail", "–"}
