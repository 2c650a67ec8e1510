"""Keywords, letters and prompts: what is said is what the packages' tables say, and what they lack is left out."""

import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import soundfile
import speakers
from published import fetched

from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled
from pullpush.data.sets import spoken_words
from pullpush.errors import DataNotFoundError, UnknownNameError


def said_by(spoken, language: str) -> dict[str, str]:
    return {each.key: each.text for each in spoken if each.language == language}


def test_keywords_are_words_of_their_language(root):
    spoken = spoken_words.keywords(speakers.keywords(root))
    assert said_by(spoken, "fra")["keywords/eye"] == "œil"
    assert said_by(spoken, "deu")["keywords/eye"] == "Auge"
    assert len(said_by(spoken, "fra")) == len(speakers.WORDS)
    assert {each.kind for each in spoken} == {"word"}


def test_variants_that_share_recordings_count_once(root):
    spoken = spoken_words.keywords(speakers.keywords(root))
    serbian = [each for each in spoken if each.language == "srp"]
    assert len(serbian) == 4
    assert {each.voice for each in serbian} == {"KTuberling sr"}


def test_words_without_recordings_and_recordings_without_words_are_left_out(root):
    spoken = spoken_words.keywords(speakers.keywords(root))
    assert len(spoken) == 28
    assert not {each.path.name for each in spoken} & {"huh.wav", "old_ear.wav"}


def test_letters_come_with_their_voices(root):
    spoken = spoken_words.letters(speakers.letters(root))
    english = [each for each in spoken if each.language == "eng" and each.text == "a"]
    assert [each.voice for each in english] == ["KLettres en", "KLettres en_GB"]
    assert {each.key for each in spoken if each.text == "a"} == {"letters/a"}
    assert "no" not in {each.text for each in spoken}
    assert {each.text for each in spoken if each.kind == "syllable"} == {"ox"}


def test_prompts_say_what_is_spoken_and_no_more(root):
    spoken = spoken_words.prompts(speakers.prompts(root))
    english = said_by(spoken, "eng")
    assert english == {
        "prompts/activated": "Activated en.",
        "prompts/agent-user": "Agent login. Please enter your number.",
        "prompts/digits/7": "seven",
        "prompts/letters/dash": "dash",
        "letters/a": "a",
        "prompts/phonetic/c_p": "charlie",
        "prompts/spy-iax2": "IAX",
        "prompts/vm-intro": "Please leave a message.",
    }
    kinds = {each.key: each.kind for each in spoken}
    assert kinds["prompts/digits/7"] == "number"
    assert kinds["letters/a"] == "letter"
    assert kinds["prompts/phonetic/c_p"] == "code word"
    assert kinds["prompts/agent-user"] == "sentence"
    assert kinds["prompts/letters/dash"] == "word"


def test_prompts_without_a_transcript_and_silence_are_none(root):
    spoken = spoken_words.prompts(speakers.prompts(root))
    assert not any("untold" in str(each.path) for each in spoken)
    assert not any("silence" in str(each.path) or "beep" in str(each.path) for each in spoken)


def test_a_language_is_a_dataset_with_its_words_as_classes(root):
    speakers.keywords(root)
    clips = load_labelled("keywords:deu")
    assert len(clips) == len(speakers.WORDS)
    asked = clips.prompts()
    assert "Augenbraue" in asked
    assert [asked[label] for label in clips.labels] == [
        spoken_words.texts()[Path(name).stem]["deu"] for name in clips.columns["file"]
    ]


def test_prompts_are_split_by_what_is_said(root, monkeypatch):
    speakers.prompts(root)
    monkeypatch.setattr("pullpush.data.sets.spoken_words.TEST", 0.4)
    monkeypatch.setattr("pullpush.data.sets.spoken_words.VALID", 0.2)
    corpus = load_corpus(CorpusConfig("prompts:eng,ita"))
    parts = [set(clips.columns["file"]) for clips in corpus.splits.values()]
    assert sum(map(len, parts)) == 8
    assert sum(len(clips) for clips in corpus.splits.values()) == 16


def test_a_language_that_nobody_speaks_is_refused(root):
    speakers.keywords(root)
    with pytest.raises(UnknownNameError, match=r"language of keywords 'ind'.*known: cat, dan"):
        load_labelled("keywords:ind")
    with pytest.raises(DataNotFoundError, match=r"no recording in fin.*deu, fra, srp"):
        load_labelled("keywords:fin")


def test_packages_that_are_not_there_are_named(root):
    with pytest.raises(DataNotFoundError, match="pullpush fetch prompts"):
        load_corpus(CorpusConfig("prompts"))
    (root / "prompts").mkdir(parents=True)
    with pytest.raises(DataNotFoundError, match=r"asterisk-core-sounds-en-wav 1\.6\.1-1"):
        load_corpus(CorpusConfig("prompts"))


def test_every_word_belongs_to_a_language_that_is_spoken():
    spoken = set(spoken_words.CODES.values())
    for key, words in spoken_words.texts().items():
        assert words.keys() <= spoken, key
        assert all(isinstance(word, str) and word.strip() == word and word for word in words.values()), key
        assert "eng" in words or "tux" in key, key


# ---------------------------------------------------------------- the real package


@pytest.fixture(scope="module")
def real():
    """The real keywords, fetched if they are not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PULLPUSH_DATA", raising=False)
        return fetched(lambda: spoken_words.keywords(registry.fetch("keywords")))


def test_the_real_keywords_are_what_the_page_says(real):
    recordings, seconds = Counter(), Counter()
    for each in real:
        recordings[each.language] += 1
        seconds[each.language] += soundfile.info(each.path).duration
    assert len(recordings) == 23
    assert recordings.total() == 1674
    assert (recordings["fra"], recordings["swe"]) == (190, 13)
    assert seconds["ukr"] == pytest.approx(143, abs=1)
    for row in (Path(__file__).parents[2] / "book" / "library" / "data.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0] in recordings and len(cells) == 4:
            assert cells[1] == f"{recordings[cells[0]]} · {seconds[cells[0]]:.0f} s", cells


def test_words_are_those_that_file_names_spell(real):
    """An oracle that is not ours: in these languages, files are called by the words that are heard."""
    spelled = ("fra", "dan", "spa", "fin", "gle", "ita", "nds", "nld", "por", "ron", "srp", "swe", "wln")
    for language in spelled:
        pairs = [(each.path.stem, each.text) for each in real if each.language == language]
        if language == "dan":  # themes that came later have English names
            pairs = [pair for pair in pairs if not pair[0].startswith(("tux", "tv", "xmas", "moon"))]
        found = [plain(text) in plain(stem) for stem, text in pairs]
        assert sum(found) >= 0.9 * len(found), [pair for pair, same in zip(pairs, found, strict=True) if not same]


def plain(text: str) -> str:
    """Letters alone, without accents, as file names have them."""
    for letter, plain_one in {"ø": "oe", "æ": "ae", "œ": "oe", "å": "aa", "đ": "dj", "ü": "ue"}.items():
        text = text.lower().replace(letter, plain_one)
    decomposed = unicodedata.normalize("NFD", text)
    folded = "".join(each for each in decomposed if each.isalpha() and not unicodedata.combining(each))
    return folded.replace("aa", "a").replace("ae", "a").replace("oe", "o")
