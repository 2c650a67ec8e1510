"""Prompts in sixteen languages: every event and instrument has a name of its own in each of them."""

import unicodedata

import pytest

from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.language.grammar import prompts
from pullpush.data.language.vocabulary import LABELS, load_events, load_labels
from pullpush.data.languages import LANGUAGES, read_table
from pullpush.data.music.instruments import event_of, load_instruments
from pullpush.data.recordings.corpora import label_prompts
from pullpush.errors import UnknownNameError

FURTHER = ("ara", "ita", "kor", "pol", "por", "rus", "tha", "tur")
SCRIPTS = {"ara": "ARABIC", "kor": "HANGUL", "rus": "CYRILLIC", "tha": "THAI"}
SCRIPTS |= dict.fromkeys(("ita", "pol", "por", "tur"), "LATIN")
NAMES = {
    "events": [event.name for event in load_events()],
    "instruments": [item.name for item in load_instruments()],
    "synthetic": [event.name for event in synthetic_events()],
}
SETS = {
    "esc50": "dog rooster pig cow frog cat hen insects sheep crow rain sea_waves crackling_fire crickets "
    "chirping_birds water_drops wind pouring_water toilet_flush thunderstorm crying_baby sneezing "
    "clapping breathing coughing footsteps laughing brushing_teeth snoring drinking_sipping "
    "door_wood_knock mouse_click keyboard_typing door_wood_creaks can_opening washing_machine "
    "vacuum_cleaner clock_alarm clock_tick glass_breaking helicopter chainsaw siren car_horn engine train "
    "church_bells airplane fireworks hand_saw",
    "urbansound8k": "air_conditioner car_horn children_playing dog_bark drilling engine_idling gun_shot jackhammer "
    "siren street_music",
    "gtzan": "blues classical country disco hiphop jazz metal pop reggae rock",
}


def in_words(group: str, language: str) -> list[str]:
    if group == "instruments":
        return prompts([event_of(item) for item in load_instruments()], language, "{label}")
    return prompts(load_events() if group == "events" else synthetic_events(), language, "{label}")


@pytest.mark.parametrize("language", FURTHER)
@pytest.mark.parametrize("group", NAMES)
def test_each_is_called_by_a_name_of_its_own_in_the_letters_of_the_language(group, language):
    labels = in_words(group, language)
    assert len(labels) == len(NAMES[group])
    assert len({label.casefold() for label in labels}) == len(labels)
    borrowed = {"hi-hat"}
    for label in labels:
        letters = {unicodedata.name(x).split()[0] for x in label if x.isalpha()}
        assert letters == {SCRIPTS[language]} or label in borrowed, label
        assert label == unicodedata.normalize("NFC", label)


@pytest.mark.parametrize("language", FURTHER)
def test_prompts_hold_the_labels_in_a_sentence_or_a_template(language):
    labels, sentences = in_words("events", language), prompts(load_events(), language)
    assert all(label in sentence and label != sentence for label, sentence in zip(labels, sentences, strict=True))
    assert len({sentence.replace(label, "", 1) for label, sentence in zip(labels, sentences, strict=True)}) == 1
    assert prompts(load_events(), language, "<{label}>") == [f"<{label}>" for label in labels]


@pytest.mark.parametrize(("name", "count"), [("esc50", 50), ("urbansound8k", 10), ("gtzan", 10)])
def test_the_sets_of_table_7_are_asked_in_its_languages(name, count):
    classes = SETS[name].split()
    assert len(set(classes)) == count
    for language in ("deu", "zho", "jpn", "rus"):
        asked = label_prompts(classes, language, "{label}")
        assert len(set(asked)) == count
    assert label_prompts(["disco"], "deu") == ["Dies ist ein Geräusch: Disco."]
    assert label_prompts(["disco"], "deu", prompt="Musik: {label}.") == ["Musik: Disco."]


def test_the_table_names_nothing_that_is_nowhere_and_lacks_no_language():
    table = read_table(LABELS)["labels"]
    own = set().union(*NAMES.values())
    published = set(" ".join(SETS.values()).split())
    assert set(table) == own | published
    for name, words in table.items():
        assert all(label == " ".join(label.split()) != "" for label in words.values()), name
        assert set(words) == (set(FURTHER) if name in own else set()) | (
            {"deu", "zho", "jpn", "rus"} if name in published else set()
        )
    assert not set(load_labels().names) - {*FURTHER, *LANGUAGES}


def test_what_nobody_translated_is_named():
    with pytest.raises(UnknownNameError, match="unknown language of labels 'rsu': did you mean 'rus'"):
        prompts(load_events(), "rsu")
    with pytest.raises(UnknownNameError, match="language of the label 'disco' 'kor': known: deu, jpn, rus, zho"):
        label_prompts(["disco"], "kor")
    with pytest.raises(UnknownNameError, match="language of labels 'dan'"):
        prompts([event_of(item) for item in load_instruments()], "dan")
