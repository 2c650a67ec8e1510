"""What other projects' code computes, held against the tools of information retrieval."""

import ir_measures
import pytest
import torch
from ir_measures import AP, RR, R, Success, nDCG

from pullpush.metrics import protocols, retrieval, retrieval_per_query
from pullpush.metrics.protocols import scored


@pytest.fixture
def embedded():
    """Forty clips with five captions each, near them."""
    generator = torch.Generator().manual_seed(0)
    audio = torch.randn(40, 8, generator=generator, dtype=torch.float64)
    text = audio[:, None] + 1.2 * torch.randn(40, 5, 8, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(audio, dim=-1), torch.nn.functional.normalize(text, dim=-1)


def judged(similarity, relevance, measures):
    """What trec_eval's measures give, means over queries; graded relevance in tenths."""
    grades = (relevance.double() * 10).round().int().tolist()
    truth = {f"q{q}": {f"d{d}": int(g) for d, g in enumerate(row)} for q, row in enumerate(grades)}
    run = {f"q{q}": {f"d{d}": s for d, s in enumerate(row)} for q, row in enumerate(similarity.tolist())}
    return ir_measures.calc_aggregate(measures, truth, run)


def test_average_precision_is_trecs_where_more_items_are_relevant_than_the_cut_off():
    generator = torch.Generator().manual_seed(1)
    similarity = torch.rand(30, 50, generator=generator, dtype=torch.float64)
    relevance = torch.rand(30, 50, generator=generator) < 0.4
    ours = retrieval(similarity, relevance, ks=(1, 5), map_at=(5, 10, 16), divisor="relevant")
    theirs = judged(similarity, relevance, [AP @ 5, AP @ 10, AP @ 16, Success @ 1, Success @ 5])
    for name, measure in (("mAP@5", AP @ 5), ("mAP@10", AP @ 10), ("mAP@16", AP @ 16)):
        assert ours[name] == pytest.approx(theirs[measure])
    assert ours["R@1"] == pytest.approx(theirs[Success @ 1])
    assert ours["R@5"] == pytest.approx(theirs[Success @ 5])
    assert retrieval(similarity, relevance, map_at=(5,))["mAP@5"] > ours["mAP@5"], (
        "our default asks for what can be had"
    )


def test_the_divisors_agree_where_the_cut_off_holds_all_that_is_relevant():
    similarity, relevance = torch.rand(9, 30), torch.zeros(9, 30, dtype=torch.bool)
    relevance[:, :7] = True
    for values in (retrieval(similarity, relevance, map_at=(7, 16), divisor=d) for d in ("reachable", "relevant")):
        assert values == retrieval(similarity, relevance, map_at=(7, 16))
    with pytest.raises(ValueError, match="did you mean 'relevant'"):
        retrieval(similarity, relevance, divisor="relevance")


def test_graded_relevance_is_discounted_as_trec_does():
    generator = torch.Generator().manual_seed(2)
    similarity = torch.rand(25, 40, generator=generator, dtype=torch.float64)
    relevance = torch.randint(0, 11, (25, 40), generator=generator).double() / 10
    relevance[:, 0] = 1
    ours = retrieval(similarity, relevance, map_at=(10, 16))
    theirs = judged(similarity, relevance, [nDCG @ 10, nDCG @ 16])
    assert ours["nDCG@10"] == pytest.approx(theirs[nDCG @ 10])
    assert ours["nDCG@16"] == pytest.approx(theirs[nDCG @ 16])


def test_with_five_captions_all_but_mteb_and_the_first_caption_agree(embedded):
    scores = scored(*embedded)
    ours = scores["Pull & Push"]
    assert 0.1 < ours["T2A R@1"] < 0.9
    for title in ("LAION-CLAP", "ML-CLAP, WavCaps, GLAP"):
        assert scores[title] == pytest.approx(ours)
    assert scores["DCASE, captions"] == pytest.approx({k: v for k, v in ours.items() if k.startswith("T2A")})
    assert scores["mteb"]["T2A R@5"] == pytest.approx(ours["T2A R@5"])
    assert scores["mteb"]["A2T mAP@10"] == pytest.approx(ours["A2T mAP@10"])
    assert scores["mteb"]["A2T R@5"] < ours["A2T R@5"]


def test_mteb_is_trec_eval(embedded):
    audio, text = embedded
    truth = torch.eye(40, dtype=torch.bool).repeat_interleave(5, dim=1)
    theirs = judged(audio @ text.flatten(0, 1).T, truth, [R @ 1, R @ 5, R @ 10, AP @ 10])
    ours = scored(audio, text)["mteb"]
    for name, measure in (("R@1", R @ 1), ("R@5", R @ 5), ("R@10", R @ 10), ("mAP@10", AP @ 10)):
        assert ours[f"A2T {name}"] == pytest.approx(theirs[measure])


def test_the_first_caption_has_one_rank_in_each_direction(embedded):
    audio, text = embedded
    similarity, truth = text[:, 0] @ audio.T, torch.eye(40, dtype=torch.bool)
    ours = protocols.first_caption(audio, text)
    for side, matrix in (("T2A", similarity), ("A2T", similarity.T)):
        theirs = judged(matrix, truth, [Success @ 5, RR @ 10])
        assert ours[f"{side} R@5"] == pytest.approx(theirs[Success @ 5])
        assert ours[f"{side} mAP@10"] == pytest.approx(theirs[RR @ 10])


def test_equal_captions_cost_us_a_query_and_others_nothing_they_could_know():
    clips = torch.eye(12)
    text = clips[:, None].repeat(1, 5, 1)
    text[0, 0] = text[1, 0]  # a caption of clip 0 in the words of one of clip 1
    scores = scored(clips, text)
    assert scores["Pull & Push"]["A2T R@1"] == pytest.approx(11 / 12), "clip 1 finds the stranger first"
    values = retrieval_per_query(clips @ text.flatten(0, 1).T, torch.eye(12).repeat_interleave(5, 1).bool(), ks=(1,))
    assert values["R@1"].tolist() == [1, 0, *[1] * 10]
