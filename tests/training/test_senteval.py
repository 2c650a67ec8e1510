"""SentEval's scores, held against searches by hand, and its tasks, read from miniature copies of its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from torch import nn

from pullpush import extras
from pullpush.encoders import create
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError
from pullpush.extras import MissingExtraError
from pullpush.training import senteval
from pullpush.training.senteval import (
    EXTRINSIC,
    INTRINSIC,
    SOURCES,
    SPLIT_CS,
    TASKS,
    TEST_CS,
    Sentences,
    embedder,
    language_quality,
    read_task,
)

PAPER = Path(__file__).parents[2] / "book" / "paper-tables" / "language_encoder_table14.csv"
SIZES = {"train": 40, "valid": 12, "test": 12}


def labelled(seed: int, count: int, classes: int = 3) -> Sentences:
    """Sentences that are points around one place a class, for `embed` to read."""
    centres = np.random.default_rng(99).normal(size=(classes, 5))
    labels = np.arange(count) % classes
    points = centres[labels] + 1.5 * np.random.default_rng(seed).normal(size=(count, 5))
    return Sentences([" ".join(map(str, point)) for point in points], [], labels.tolist())


def counts(texts: list[str]) -> np.ndarray:
    return np.array([[float(word) for word in text.split()] for text in texts])


def embed(texts: list[str]) -> torch.Tensor:
    return torch.from_numpy(counts(texts))


class Reader(nn.Module):
    """A text encoder that counts two words: everything in the miniature tasks hangs on them."""

    dim = 3

    def forward(self, texts, languages=None):
        return torch.tensor([[text.count("good"), text.count("bad"), 0.2] for text in texts], dtype=torch.float32)


class Readers(nn.Module):
    """A model whose features know, and whose embeddings do not."""

    def __init__(self):
        super().__init__()
        self.text = Reader()

    def encode_text(self, texts, languages=None):
        assert not self.training
        return torch.ones(len(texts), 2) / 2**0.5


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty place for SentEval's files."""
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path))
    return tmp_path / "SentEval/data/downstream"


def write(path: Path, lines: list[str], encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding=encoding)


def words(number: int, good: int) -> str:
    return f"sentence {number} is {'good' if good else 'bad'} ."


def miniature(home: Path) -> None:
    """All fourteen tasks; sentences say "good" or "bad", and everything hangs on that."""
    pairs = [(words(n, n % 2), words(n + 50, n // 2 % 2)) for n in range(12)]
    alike = [5.0 if n % 2 == n // 2 % 2 else 1.0 for n in range(12)]
    for year, sources in SOURCES.items():
        for source in sources:
            folder = home / "STS" / f"{year}-en-test"
            gold = [str(value) for value in alike]
            gold[0] = ""  # was not judged
            write(folder / f"STS.input.{source}.txt", ["\t".join(pair) for pair in pairs])
            write(folder / f"STS.gs.{source}.txt", gold)
    rows = [f"main\tMSR\t2012\t{n}\t{alike[n]}\t{one}\t{two}" for n, (one, two) in enumerate(pairs)]
    write(home / "STS/STSBenchmark/sts-test.csv", rows)
    rows = [f"{n}\t{one}\t{two}\t{alike[n]}\tNEUTRAL" for n, (one, two) in enumerate(pairs)]
    write(home / "SICK/SICK_test_annotated.txt", ["pair_ID\tA\tB\trelatedness\tjudgment", *rows])
    for positive, negative in (
        ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
        ("CR/custrev.pos", "CR/custrev.neg"),
        ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
        ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    ):
        for name, good in ((positive, 1), (negative, 0)):
            write(home / name, [f"caf\xe9 {words(n, good)}" for n in range(20)], "latin-1")
    for split, file in (("train", "sentiment-train"), ("valid", "sentiment-dev"), ("test", "sentiment-test")):
        write(home / "SST/binary" / file, [f"{words(n, n % 2)}\t{n % 2}" for n in range(SIZES[split])])
    for split, file in (("train", "train_5500.label"), ("test", "TREC_10.label")):
        kinds = ("HUM:ind", "DESC:manner", "LOC:city")
        texts = ("good", "bad", "good good good")
        lines = [f"{kinds[n % 3]} who {n} {texts[n % 3]} ?" for n in range(SIZES[split])]
        write(home / "TREC" / file, lines, "latin-1")
    for split in ("train", "test"):
        same = [(n % 2 == n // 2 % 2, words(n, n % 2), words(n + 9, n // 2 % 2)) for n in range(SIZES[split])]
        rows = [f"{int(one)}\t1\t2\t{left}\t{right}" for one, left, right in same]
        write(home / f"MRPC/msr_paraphrase_{split}.txt", ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows])


def test_accuracies_are_those_of_a_search_by_hand():
    parts = {split: labelled(seed, count) for seed, (split, count) in enumerate({"train": 90, "valid": 40}.items())}
    test = labelled(2, 60)

    def fitted(part, rows, c):
        return LogisticRegression(C=c, max_iter=2000).fit(counts(part.left)[rows], np.array(part.gold)[rows])

    def right(model, part, rows):
        return model.score(counts(part.left)[rows], np.array(part.gold)[rows])

    def best(train, rows, cs, folds):
        """The first C with the highest mean accuracy over folds of some rows."""
        split = StratifiedKFold(folds, shuffle=True, random_state=1111).split(rows, np.array(train.gold)[rows])
        trials = [(rows[one], rows[other]) for one, other in split]
        means = [np.mean([right(fitted(train, one, c), train, other) for one, other in trials]) for c in cs]
        return cs[int(np.argmax(np.round(means, 4)))]

    every = {split: np.arange(len(part.gold)) for split, part in {**parts, "test": test}.items()}
    train = parts["train"]
    known = [right(fitted(train, every["train"], c), parts["valid"], every["valid"]) for c in SPLIT_CS]
    chosen = SPLIT_CS[int(np.argmax(np.round(known, 4)))]
    expected = right(fitted(train, every["train"], chosen), test, every["test"])
    assert senteval._extrinsic({**parts, "test": test}, embed, 3) == pytest.approx(expected)

    chosen = best(train, every["train"], TEST_CS, 3)
    expected = right(fitted(train, every["train"], chosen), test, every["test"])
    assert senteval._extrinsic({"train": train, "test": test}, embed, 3) == pytest.approx(expected)

    outer = StratifiedKFold(3, shuffle=True, random_state=1111).split(every["train"], train.gold)
    scores = []
    for learnt, tested in outer:
        chosen = best(train, learnt, SPLIT_CS, 3)
        scores.append(right(fitted(train, learnt, chosen), train, tested))
    assert senteval._extrinsic({"all": train}, embed, 3) == pytest.approx(np.mean(scores))
    assert 0.5 < np.mean(scores) < 1, "the clouds overlap"


def test_a_classifier_of_pairs_takes_differences_and_products():
    part = Sentences(["1 2"], ["3 2"], [1.0])
    assert senteval._features(part, embed).tolist() == [[2, 0, 3, 4]]


def test_sources_are_pooled_or_averaged():
    parts = {}
    for seed, count in enumerate((12, 40)):
        left, right = labelled(seed, count).left, labelled(seed + 5, count).left
        parts[str(count)] = Sentences(left, right, np.random.default_rng(seed).random(count).tolist())
    cosines = [torch.cosine_similarity(embed(part.left), embed(part.right)).numpy() for part in parts.values()]
    golds = [part.gold for part in parts.values()]
    each = [spearmanr(*pair).statistic for pair in zip(cosines, golds, strict=True)]
    pooled = spearmanr(np.concatenate(cosines), golds[0] + golds[1]).statistic
    assert senteval._intrinsic(parts, embed, "all") == pytest.approx(pooled, abs=1e-6)
    assert senteval._intrinsic(parts, embed, "mean") == pytest.approx(np.mean(each), abs=1e-6)
    assert senteval._intrinsic(parts, embed, "wmean") == pytest.approx((12 * each[0] + 40 * each[1]) / 52, abs=1e-6)
    alike = {"one": Sentences(["1 0"] * 3, ["1 0"] * 3, [1, 2, 3])}
    assert senteval._intrinsic(alike, embed, "all") == 0
    with pytest.raises(UnknownNameError, match="wmean"):
        language_quality(Readers(), ("STS12",), pool="median")


def test_every_task_is_read_and_scored(home):
    miniature(home)
    model = Readers().train()
    table = language_quality(model, level="features", folds=2)
    assert model.training
    assert list(table["task"]) == list(TASKS)
    assert list(table["kind"]) == ["intrinsic"] * 7 + ["extrinsic"] * 7
    # Judgements have two values and so have cosines: no rank is wrong.
    assert table["score"].to_numpy() == pytest.approx(np.ones(14)), "all that is asked for is in the features"
    counts = dict(zip(table["task"], table["n"], strict=True))
    assert counts["STS12"] == 5 * 11, "what was not judged is left out"
    assert (counts["STS-B"], counts["MR"], counts["SST2"], counts["MRPC"]) == (12, 40, 12, 12)


def test_the_level_decides_what_is_asked(home):
    miniature(home)
    table = language_quality(Readers(), ("STS13", "SUBJ", "MRPC"), folds=2)
    assert dict(zip(table["task"], table["score"], strict=True)) == pytest.approx(
        {"STS13": 0, "SUBJ": 0.5, "MRPC": 0.5}
    ), "embeddings that are all one know nothing"
    with pytest.raises(UnknownNameError, match="level"):
        language_quality(Readers(), level="pooler")
    blind = nn.Module()
    blind.encode_text = Readers().encode_text
    with pytest.raises(PullPushError, match="no features"):
        embedder(blind, "features")


def test_a_model_of_the_library_is_scored(home):
    miniature(home)
    model = create("cnn", "hashed", dim=8)
    table = language_quality(model, ("STS-B", "SST2"))
    assert table["score"].between(-1, 1).all()
    again = language_quality(model, ("STS-B", "SST2"), batch_size=5)
    assert again["score"].to_numpy() == pytest.approx(table["score"].to_numpy(), abs=1e-6)


def test_sentences_of_one_text_are_embedded_once():
    asked = []
    model = Readers().eval()
    model.encode_text = lambda texts, languages: asked.extend(texts) or torch.tensor([[float(len(t))] for t in texts])
    found = embedder(model, batch_size=2)(["abc", "a", "abc", "ab"])
    assert found.flatten().tolist() == [3, 1, 3, 2]
    assert asked == ["a", "ab", "abc"]


def test_trec_is_numbered_by_name_and_latin(home):
    miniature(home)
    parts = read_task("TREC")
    assert parts["train"].gold[:3] == [1, 0, 2]
    assert parts["train"].left[0] == "who 0 good ?"
    assert read_task("MR")["all"].left[0].startswith("café sentence 0 is bad")


def test_what_is_missing_or_broken_is_named(home):
    with pytest.raises(DataNotFoundError, match=r"get_transfer_data.*PULLPUSH_DATA"):
        language_quality(Readers(), ("MR",))
    miniature(home)
    (home / "CR/custrev.neg").unlink()
    with pytest.raises(DataNotFoundError, match=r"custrev\.neg"):
        read_task("CR")
    write(home / "STS/STS13-en-test/STS.gs.FNWN.txt", ["5", "4"])
    with pytest.raises(PullPushError, match="STS13"):
        read_task("STS13")
    write(home / "STS/STSBenchmark/sts-test.csv", ["a,b,c"])
    with pytest.raises(PullPushError, match="STS-B"):
        read_task("STS-B")
    with pytest.raises(UnknownNameError, match="did you mean 'SST2'"):
        read_task("SST-2")


def test_the_tasks_are_those_of_the_paper():
    if not PAPER.is_file():
        pytest.skip("the paper's table is not here")
    lines = [line.split(",") for line in PAPER.read_text(encoding="utf-8").splitlines()[1:]]
    for group, names in (("intrinsic", INTRINSIC), ("extrinsic", EXTRINSIC)):
        own = dict.fromkeys(line[3] for line in lines if f"group={group}" in line[-1] and line[3] != "SentEval")
        assert tuple(own) == names


def test_without_scikit_learn_its_extra_is_named(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pullpush\[book\]"):
        senteval._extrinsic({"all": labelled(0, 12)}, embed, 2)
