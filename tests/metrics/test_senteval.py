"""SentEval's scores, held against scikit-learn, and its tasks, read from miniature copies of its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from torch import nn

from pullpush.data.sentences import EXTRINSIC, INTRINSIC, SOURCES, read_task
from pullpush.encoders import create
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError
from pullpush.extras import MissingExtraError
from pullpush.metrics import senteval as scores
from pullpush.metrics.senteval import Examples, Pairs, logistic_regression, similarity_score
from pullpush.training import senteval
from pullpush.training.senteval import TASKS, MtebEncoder, embedder, language_quality

PAPER = Path(__file__).parents[2] / "book" / "paper-tables" / "language_encoder_table14.csv"
SIZES = {"train": 40, "valid": 12, "test": 12}


def cloud(seed: int, count: int, classes: int, spread: float = 1.5) -> Examples:
    """Points around one place a class."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(classes, 5))
    labels = np.arange(count) % classes
    points = centres[labels] + spread * chance.normal(size=(count, 5))
    return Examples(torch.from_numpy(points).float(), torch.from_numpy(labels))


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


@pytest.mark.parametrize("classes", [2, 6])
@pytest.mark.parametrize("c", [0.25, 8.0])
def test_regression_is_that_of_scikit_learn(classes, c):
    examples = cloud(0, 90, classes)
    weights, bias = logistic_regression(examples, c)
    theirs = LogisticRegression(C=c, tol=1e-8, max_iter=5000).fit(examples.features.numpy(), examples.labels.numpy())
    assert weights.shape == theirs.coef_.shape
    torch.testing.assert_close(weights, torch.from_numpy(theirs.coef_).double(), atol=2e-3, rtol=2e-3)
    known = torch.from_numpy(theirs.intercept_).double()
    level = 0 if classes == 2 else (bias - known).mean()  # softmax leaves it open
    torch.testing.assert_close(bias, known + level, atol=2e-3, rtol=2e-3)


def test_accuracies_are_those_of_scikit_learn_up_to_the_folds():
    train, valid, test = cloud(0, 240, 3), cloud(1, 90, 3), cloud(2, 90, 3)

    def theirs(examples, c):
        return LogisticRegression(C=c, max_iter=2000).fit(examples.features.numpy(), examples.labels.numpy())

    def right(fitted, examples):
        return fitted.score(examples.features.numpy(), examples.labels.numpy())

    known = [right(theirs(train, c), valid) for c in scores.SPLIT_CS]
    best = scores.SPLIT_CS[int(np.argmax(np.round(100 * np.array(known), 2)))]
    assert scores.validated_accuracy(train, valid, test) == pytest.approx(right(theirs(train, best), test), abs=0.012)
    assert scores.crossed_accuracy(train, test, 2) == pytest.approx(right(theirs(train, 1.0), test), abs=0.05)
    splits = StratifiedKFold(10, shuffle=True, random_state=0).split(train.features, train.labels)
    own = [
        right(theirs(Examples(train.features[a], train.labels[a]), 1.0), Examples(train.features[b], train.labels[b]))
        for a, b in splits
    ]
    assert scores.nested_accuracy(train, 2) == pytest.approx(np.mean(own), abs=0.06)


def test_folds_share_out_each_class_and_test_everything_once():
    examples = cloud(0, 47, 3)
    marked = Examples(torch.arange(47.0)[:, None], examples.labels)
    tested = []
    for train, test in scores._folds(marked, 5):
        assert not set(train.features.flatten().tolist()) & set(test.features.flatten().tolist())
        assert len(train.labels) + len(test.labels) == 47
        counts = torch.bincount(test.labels, minlength=3)
        assert int(counts.max() - counts.min()) <= 1
        tested += test.features.flatten().tolist()
    assert sorted(tested) == list(range(47))


def test_one_class_cannot_be_learnt():
    with pytest.raises(ValueError, match="two classes"):
        logistic_regression(Examples(torch.randn(4, 2), torch.zeros(4).long()), 1.0)


def test_sources_are_pooled_or_averaged():
    chance = torch.Generator().manual_seed(0)
    parts = []
    for count in (12, 40):
        left, right = torch.randn(2, count, 4, generator=chance)
        parts.append(Pairs(left, right, torch.rand(count, generator=chance).tolist()))
    cosines = [torch.cosine_similarity(part.left, part.right).numpy() for part in parts]
    own = [spearmanr(cosine, part.gold).statistic for cosine, part in zip(cosines, parts, strict=True)]
    pooled = spearmanr(np.concatenate(cosines), parts[0].gold + parts[1].gold).statistic
    assert similarity_score(parts) == pytest.approx(pooled, abs=1e-6)
    assert similarity_score(parts, "mean") == pytest.approx(np.mean(own), abs=1e-6)
    assert similarity_score(parts, "wmean") == pytest.approx((12 * own[0] + 40 * own[1]) / 52, abs=1e-6)
    scaled = [Pairs(3 * part.left, 0.1 * part.right, part.gold) for part in parts]
    assert similarity_score(scaled) == pytest.approx(pooled, abs=1e-6), "only the angle counts"
    assert similarity_score([Pairs(torch.ones(3, 2), torch.ones(3, 2), [1, 2, 3])]) == 0
    with pytest.raises(ValueError, match="wmean"):
        similarity_score(parts, "median")


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


def test_without_mteb_its_extra_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(senteval.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"pullpush\[senteval\]"):
        senteval.similarity_by_mteb(Readers())


def test_mteb_scores_as_the_files_do(home, monkeypatch):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset

    miniature(home)
    part = read_task("STS-B")["test"]
    task = mteb.get_task("STSBenchmark")
    rows = Dataset.from_dict({"sentence1": part.left, "sentence2": part.right, "score": part.gold})
    monkeypatch.setattr(type(task), "load_data", lambda self, **_: setattr(self, "dataset", {"test": rows}))
    (row,) = senteval.similarity_by_mteb(Readers(), ("STS-B",), level="features").to_dict("records")
    assert row == {"task": "STS-B", "kind": "intrinsic", "score": pytest.approx(1), "n": 12}
    with pytest.raises(UnknownNameError, match="mteb has"):
        senteval.similarity_by_mteb(Readers(), ("MRPC",))


def test_the_adaptor_speaks_of_cosines():
    encoder = MtebEncoder(lambda texts: torch.tensor([[len(text), 1.0] for text in texts]))
    left = encoder.encode([{"text": ["a", "bb"]}], task_metadata=None, hf_split="test", hf_subset="default")
    assert left.tolist() == [[1, 1], [2, 1]]
    assert encoder.similarity(left, 5 * left).diagonal().tolist() == pytest.approx([1, 1])
    assert encoder.similarity_pairwise(left, left[::-1].copy()).tolist() == pytest.approx([0.948683] * 2)
