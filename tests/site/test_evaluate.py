"""`pullpush evaluate`: what a whole published model scores on a dataset, by the book's metrics."""

import miniature
import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from click.testing import CliRunner
from embeddings import sphere

from pullpush.encoders.clap import tiny_whole
from pullpush.encoders.interface import Model
from pullpush.encoders.pretrained import tiny_tokenizer
from pullpush.forces import decompose
from pullpush.site.cli import main
from pullpush.site.evaluate import evaluate, first_of, forces, geometry, plain


class Ideal(Model):
    """Knows which tone a caption is about: clips by their strongest frequency, captions by their number."""

    tau, bias, sample_rate = 0.1, 0.0, 16_000

    def __init__(self, numbers):
        super().__init__()
        self.numbers = numbers  # caption → tone

    def encode_audio(self, audio, lengths=None):
        spectrum = torch.fft.rfft(audio, n=16_000).abs()
        return torch.nn.functional.one_hot(spectrum.argmax(1), spectrum.shape[1]).float()

    def encode_text(self, texts, languages=None):
        return torch.nn.functional.one_hot(torch.tensor([self.numbers[text] for text in texts]), 8001).float()


@pytest.fixture
def clotho(tmp_path, home, monkeypatch):
    miniature.clotho(tmp_path)
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def clap(tmp_path):
    """A folder with a tiny CLAP."""
    folder = tmp_path / "clap"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.ClapModel(tiny_whole()["model"]).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    transformers.ClapFeatureExtractor(truncation="rand_trunc").save_pretrained(folder)
    return folder


def score(table, name, part=None):
    found = table[(table["score"] == name) & (table["part"] == (part or table["part"]))]
    assert len(found) == 1
    return found.iloc[0]


def test_a_model_that_knows_the_pairs_scores_all_and_counts_are_told(clotho):
    from pullpush.data.recordings.corpora import CorpusConfig, load_split

    clips = load_split(CorpusConfig("clotho"), "test")
    audio, lengths = clips.audio(slice(None))
    tones = Ideal({}).encode_audio(audio, lengths).argmax(1).tolist()
    numbers = {text: tone for texts, tone in zip(clips.captions("eng"), tones, strict=True) for text in texts}
    table = evaluate(Ideal(numbers), "clotho", tau=0.1)
    assert score(table, "clips")["value"] == len(clips)
    assert score(table, "captions")["value"] == 5 * len(clips)
    assert score(table, "T2A R@1")["value"] == score(table, "A2T R@1")["value"] == 1.0
    assert score(table, "T2A R@1")["chance"] == pytest.approx(1 / len(clips))
    assert score(table, "cosine with its caption")["value"] == pytest.approx(1.0)
    assert score(table, "alignment")["value"] == pytest.approx(0.0, abs=1e-6)
    assert score(table, "modality gap")["value"] == pytest.approx(0.0, abs=1e-6)
    assert score(table, "τ")["value"] == 0.1


def test_forces_are_those_of_the_whole_set_where_the_batch_is_as_large():
    audio, text = sphere(12, 5), sphere(24, 5, seed=1)
    first = first_of(text, torch.arange(12).repeat_interleave(2))
    rows = pd.DataFrame(forces(audio, first, "eng", tau=0.3, batch_size=500)).set_index(2)[3]
    found = decompose(text[::2].double(), audio.double(), 0.3)
    assert rows["‖F_push‖"] == pytest.approx(float(found.push.norm(dim=1).mean()))
    assert rows["‖F_⊥‖"] == pytest.approx(float(found.perpendicular.norm(dim=1).mean()))
    assert rows["batch"] == 12


def test_geometry_is_that_of_first_captions_by_hand():
    audio, text = sphere(6, 5, seed=2).numpy(), sphere(9, 5, seed=3).numpy()
    clip = torch.tensor([0, 0, 1, 2, 2, 2, 3, 4, 5])
    rows = pd.DataFrame(geometry(torch.tensor(audio), first_of(torch.tensor(text), clip), "eng")).set_index(2)[3]
    first = text[[0, 2, 3, 6, 7, 8]]
    cosine = first @ audio.T
    assert rows["cosine with its caption"] == pytest.approx(np.diag(cosine).mean(), abs=1e-6)
    assert rows["cosine with other captions"] == pytest.approx((cosine.sum() - np.trace(cosine)) / 30, abs=1e-6)
    assert rows["modality gap"] == pytest.approx(np.linalg.norm(audio.mean(0) - first.mean(0)), abs=1e-6)


def test_the_command_scores_a_folder_of_weights_and_writes_a_table(clotho, clap, tmp_path):
    out = tmp_path / "scores.csv"
    done = CliRunner().invoke(main, ["evaluate", f"clap:{clap}", "clotho", "--clips", "6", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "retrieval, eng" in done.output
    assert "forces, eng" in done.output
    table = pd.read_csv(out)
    assert set(table["part"]) == {"counts", "retrieval", "geometry", "forces"}
    assert score(table, "clips")["value"] == 6
    recall = score(table, "A2T R@10")
    assert recall["low"] <= recall["value"] <= recall["high"] <= 1
    assert (table["dataset"] == "clotho").all()


def test_the_command_classifies_a_labelled_set(home, clap, tmp_path, monkeypatch):
    miniature.esc50(tmp_path / "data")
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    done = CliRunner().invoke(main, ["evaluate", f"clap:{clap}", "esc50"])
    assert done.exit_code == 0, done.output
    assert "zero-shot, eng (on 6 of 2,000 clips)" in done.output
    assert "macro accuracy" in done.output
    fold = CliRunner().invoke(main, ["evaluate", f"clap:{clap}", "esc50:fold=2"])
    assert "zero-shot, eng (on 3 of 2,000 clips)" in fold.output
    refused = CliRunner().invoke(main, ["evaluate", f"clap:{clap}", "esc50", "--split", "valid", "--language", "fra"])
    assert refused.exit_code == 1
    assert "split, languages goes with captions" in refused.output


def test_bad_requests_say_what_to_do(clotho, clap):
    for words, message in (
        (["clapp", "clotho"], "did you mean 'clap'"),
        (["glap", "clotho"], "trust_remote_code"),
        ([f"clap:{clap}", "cloto"], "did you mean 'clotho'"),
        ([f"clap:{clap}", "clotho", "--language", "fra"], "fra"),
        (["/no/run", "clotho"], "there is no folder /no/run: name a run's, or a published model (clap,"),
        ([f"clap:{clap}", str(clap)], f"{clap} is a folder: ask for folder:{clap}"),
    ):
        done = CliRunner().invoke(main, ["evaluate", *words])
        assert done.exit_code == 1
        assert message in done.output


def test_plain_text_has_a_block_a_part():
    rows = [
        ("counts", "", "clips", 6.0, np.nan, np.nan, np.nan),
        ("geometry", "eng", "alignment", 0.5, np.nan, np.nan, np.nan),
    ]
    table = pd.DataFrame(rows, columns=["part", "language", "score", "value", "low", "high", "chance"])
    assert [line.split() for line in plain(table).splitlines()] == [
        ["counts"],
        ["clips", "6"],
        ["geometry,", "eng", "(on", "6", "clips)"],
        ["alignment", "0.500"],
    ]
