"""Speech with what is spoken: sentences as captions, and single words or commands as labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pullpush.data.recordings.registry import DatasetCard, Listing, labelled, official_table, require_all, variants
from pullpush.errors import DataNotFoundError, PullPushError

AISHELL_FOLDERS = {"train": "train", "valid": "dev", "test": "test"}
LIBRISPEECH_TRAIN = ("train-clean-100", "train-clean-360", "train-other-500")
COMMANDS = {"v1": "speech_commands_v0.01", "v2": "speech_commands_v0.02"}
# The codes of Multilingual Spoken Words, which name its folders → ISO 639-3.
MSWC = {
    **{"ar": "ara", "as": "asm", "br": "bre", "ca": "cat", "cnh": "cnh", "cs": "ces", "cv": "chv", "cy": "cym"},
    **{"de": "deu", "dv": "div", "el": "ell", "en": "eng", "eo": "epo", "es": "spa", "et": "est", "eu": "eus"},
    **{"fa": "fas", "fr": "fra", "fy-NL": "fry", "ga-IE": "gle", "gn": "grn", "ha": "hau", "ia": "ina", "id": "ind"},
    **{"it": "ita", "ka": "kat", "ky": "kir", "lt": "lit", "lv": "lav", "mn": "mon", "mt": "mlt", "nl": "nld"},
    **{"or": "ori", "pl": "pol", "pt": "por", "rm-sursilv": "roh", "rm-vallader": "roh", "ro": "ron", "ru": "rus"},
    **{"rw": "kin", "sah": "sah", "sk": "slk", "sl": "slv", "sv-SE": "swe", "ta": "tam", "tr": "tur", "tt": "tat"},
    **{"uk": "ukr", "vi": "vie", "zh-CN": "zho"},
}


def aishell(place: Path, split: str) -> Listing:
    """AISHELL-1: transcript/aishell_transcript_v0.8.txt and wav/<train, dev or test>/<speaker>/<name>.wav.

    Words are parted by spaces there, which Chinese does not write. Recordings without a transcript, of which there are
    some, are left out.
    """
    texts = transcripts(place / "transcript" / "aishell_transcript_v0.8.txt")
    files = sorted((place / "wav" / AISHELL_FOLDERS[split]).glob("*/*.wav"))
    paths = [path for path in files if path.stem in texts]
    if not paths:
        where = place / "wav" / AISHELL_FOLDERS[split]
        raise DataNotFoundError(f"AISHELL-1 has no recording with a transcript in {where}")
    return Listing(paths, [[texts[path.stem]] for path in paths])


def aishell_2(place: Path, split: str) -> Listing:
    """AISHELL-2: iOS/data, iOS/dev and iOS/test, each with trans.txt and wav.scp, which names a path for each name."""
    folder = place / "iOS" / ("data" if split == "train" else AISHELL_FOLDERS[split])
    texts, files = transcripts(folder / "trans.txt"), transcripts(folder / "wav.scp")
    names = [name for name in texts if name in files]
    paths = [folder / files[name] for name in names]
    if not paths:
        raise DataNotFoundError(f"AISHELL-2: {folder / 'trans.txt'} and wav.scp have no name in common")
    require_all("AISHELL-2", paths, folder / "wav.scp")
    return Listing(paths, [[texts[name]] for name in names])


def transcripts(path: Path) -> Mapping[str, str]:
    """Name → what a line has after it, without spaces."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: is AISHELL complete?")
    texts = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, *rest = line.split()
        if not rest:
            raise PullPushError(f"{path}: {name!r} has nothing behind it")
        texts[name] = "".join(rest)
    return texts


def fluent_speech_commands(place: Path, split: str) -> Listing:
    """Fluent Speech Commands: data/test_data.csv and so on, wavs/speakers/<speaker>/*.wav; read by `torchaudio`.

    A class is a sentence, of which there are 248: what GLAP's baselines score in Table 6 is chance among these, not
    among the 31 intents.
    """
    from torchaudio.datasets import FluentSpeechCommands

    columns = ("path", "speakerId", "transcription", "action", "object", "location")
    official_table(place / "data" / f"{split}_data.csv", columns)  # which names what is missing
    data = FluentSpeechCommands(place.parent, split)
    rows = [data.get_metadata(row) for row in range(len(data))]
    return labelled("Fluent Speech Commands", [place / row[0] for row in rows], [row[4] for row in rows])


def librispeech(place: Path, split: str, kind: str = "other") -> Listing:
    """LibriSpeech: test-other/<speaker>/<chapter>/*.flac with <speaker>-<chapter>.trans.txt beside them; read by
    `torchaudio`.

    What is read aloud is a caption, in capitals, as published; `text_cleaning="ml-clap"` makes small letters of them.
    "valid" is dev-other, "train" those of the three training sets that are there. kind: "clean" tests on test-clean.
    """
    from torchaudio.datasets import LIBRISPEECH

    names = LIBRISPEECH_TRAIN if split == "train" else (f"{'dev' if split == 'valid' else split}-{kind}",)
    paths: list[Path] = []
    captions: list[list[str]] = []
    for name in names:
        if not (place / name).is_dir():
            continue
        data = LIBRISPEECH(place.parent, name, place.name)
        try:
            rows = [data.get_metadata(row) for row in range(len(data))]
        except (FileNotFoundError, ValueError) as error:  # no table, no line of it, or an empty line
            raise DataNotFoundError(f"LibriSpeech: {error}: unpack {name}.tar.gz again") from error
        paths += [place / row[0] for row in rows]
        captions += [[row[2]] for row in rows]
    if not paths:
        raise DataNotFoundError(f"LibriSpeech has no {' or '.join(names)} in {place}: unpack it there")
    return Listing(paths, captions)


def speech_commands(place: Path, split: str, version: str = "v2") -> Listing:
    """Speech Commands: speech_commands_v0.02/<word>/<speaker>_nohash_<number>.wav, testing_list.txt and
    validation_list.txt; every word is a class, 30 in the first version and 35 in the second. Read by `torchaudio`.

    version: "v1-sample" is all recordings of the first that are there, for a part of it without its lists.
    """
    from torchaudio.datasets import SPEECHCOMMANDS

    name, _, is_sample = version.partition("-")
    folder = COMMANDS[name]
    if is_sample:
        paths = sorted((place / folder).glob("*/*_nohash_*.wav"))
        if not paths:
            raise DataNotFoundError(f"no recording such as {place / folder / 'yes' / '0a7c2a8d_nohash_0.wav'}")
        return labelled("Speech Commands", paths, [path.parent.name for path in paths])
    for name in ("testing_list.txt", "validation_list.txt"):
        if not (place / folder / name).is_file():
            raise DataNotFoundError(
                f"no {place / folder / name}: `pullpush fetch speech_commands:{version}` gets it, or unpack it there; "
                f"speech_commands:{version}-sample takes the recordings that are there, without their lists"
            )
    subset = {"train": "training", "valid": "validation", "test": "testing"}[split]
    data = SPEECHCOMMANDS(place.parent, folder, place.name, subset=subset)
    rows = [data.get_metadata(row) for row in range(len(data))]
    return labelled("Speech Commands", [place / path for path, *_ in rows], [word for _, _, word, *_ in rows])


def fetch(root: Path, name: str, url: str, folder: str) -> None:
    """Download a set by torchaudio, against its checksum."""
    import torchaudio.datasets

    (root / folder).mkdir(parents=True, exist_ok=True)
    getattr(torchaudio.datasets, name)(root, url, folder, download=True)


def mswc(place: Path, split: str, code: str = "") -> Listing:
    """Multilingual Spoken Words: <code>/<code>_splits.csv with SET, LINK, WORD and VALID, <code>/clips/<LINK>.

    Clips that are not marked as valid are left out; the words of the split are its classes.
    """
    if not code:
        raise PullPushError(f"choose a language of Multilingual Spoken Words, such as mswc:fr: {', '.join(MSWC)}")
    folder, part = place / code, {"train": "TRAIN", "valid": "DEV", "test": "TEST"}[split]
    table = official_table(folder / f"{code}_splits.csv", ["SET", "LINK", "WORD", "VALID"])
    rows = table[(table["SET"] == part) & (table["VALID"].str.lower() == "true")]
    if rows.empty:
        raise DataNotFoundError(f"Multilingual Spoken Words has no keyword of {code} in the split {part}")
    paths = [folder / "clips" / link for link in rows["LINK"]]
    return labelled(f"Multilingual Spoken Words ({code})", paths, rows["WORD"])


AISHELL_2 = {
    "make": aishell_2,
    "title": "AISHELL-2",
    "source": "Du et al. 2018, AISHELL-2: transforming Mandarin ASR research into industrial scale",
    "authors": "Du, Na, Liu and Bu; the people who spoke",
    "licence": "for academic research, on application",
    "folder": "AISHELL-2",
    "how": "apply to AISHELL for it, and put the evaluation sets' iOS/dev and iOS/test beside iOS/data",
}
CARDS = (
    DatasetCard(
        name="aishell",
        make=aishell,
        title="AISHELL-1",
        about="Mandarin sentences read by 400 people; aishell:2 is AISHELL-2, which GLAP tests on.",
        source="Bu et al. 2017, AISHELL-1: an open-source Mandarin speech corpus and a speech recognition baseline",
        authors="Bu, Du, Na, Wu and Zheng; the people who spoke",
        licence="Apache 2.0",
        folder="data_aishell",
        seconds=15.0,
        language="zho",
        how="unpack data_aishell.tgz of OpenSLR's resource 33, and the archives in its folder wav",
        of=variants("version of AISHELL", {"1": {}, "2": AISHELL_2}),
    ),
    DatasetCard(
        name="fluent_speech_commands",
        make=fluent_speech_commands,
        title="Fluent Speech Commands",
        about="30,043 recordings of 248 English sentences by 97 people.",
        source="Lugosch et al. 2019, Speech model pre-training for end-to-end spoken language understanding",
        authors="Lugosch et al., Fluent.ai; the people who spoke",
        licence="Fluent Speech Commands Public License, for academic research",
        folder="fluent_speech_commands_dataset",
        labelled=True,
        prompt="{label}",
        how="ask Fluent.ai for it and unpack it",
    ),
    DatasetCard(
        name="librispeech",
        make=librispeech,
        title="LibriSpeech",
        about="English sentences of audio books, tested on test-other; :clean is tested on test-clean.",
        source="Panayotov et al. 2015, LibriSpeech: an ASR corpus based on public domain audio books",
        authors="Panayotov, Chen, Povey and Khudanpur; the readers of LibriVox",
        licence="CC BY 4.0",
        folder="LibriSpeech",
        seconds=35.0,
        fetch=partial(fetch, name="LIBRISPEECH", url="test-other", folder="LibriSpeech"),  # what is learnt from: 60 GB
        how="unpack test-clean.tar.gz of OpenSLR's resource 12",
        of=variants(
            "part of LibriSpeech",
            {  # GLAP tests on the first
                "other": {"title": "LibriSpeech other"},
                "clean": {
                    "title": "LibriSpeech clean",
                    "make": partial(librispeech, kind="clean"),
                    "fetch": None,
                },
            },
        ),
    ),
    DatasetCard(
        name="mswc",
        make=mswc,
        title="Multilingual Spoken Words",
        about="340,000 words of fifty languages in recordings of one second; mswc:fr is one language.",
        source="Mazumder et al. 2021, Multilingual Spoken Words Corpus",
        authors="Mazumder et al., MLCommons; the people of Common Voice",
        licence="CC BY 4.0",
        folder="mswc",
        labelled=True,
        prompt="{label}",
        seconds=1.0,
        how="unpack the recordings and the splits of a language from MLCommons' page to mswc/<code>",
        of=variants(
            "language of Multilingual Spoken Words",
            {
                code: {
                    "title": f"Multilingual Spoken Words ({code})",
                    "make": partial(mswc, code=code),
                    "language": language,
                }
                for code, language in MSWC.items()
            },
        ),
    ),
    DatasetCard(
        name="speech_commands",
        make=speech_commands,
        title="Speech Commands",
        about="105,829 recordings of one second of 35 English words; :v1 is the first version, with 30 words, and "
        ":v1-sample any part of it.",
        source="Warden 2018, Speech Commands: a dataset for limited-vocabulary speech recognition",
        authors="Pete Warden, Google; the people who spoke",
        licence="CC BY 4.0",
        folder="SpeechCommands",
        labelled=True,
        prompt="{label}",
        seconds=1.0,
        fetch=partial(fetch, name="SPEECHCOMMANDS", url=COMMANDS["v2"], folder="SpeechCommands"),
        clips=105_829,
        of=variants(
            "version of Speech Commands",
            {
                f"{version}{part}": {
                    "title": f"Speech Commands {version.upper()}{part.replace('-', ', ')}",
                    "make": partial(speech_commands, version=f"{version}{part}"),
                    "fetch": partial(fetch, name="SPEECHCOMMANDS", url=url, folder="SpeechCommands"),
                    "clips": {"v1": 64_727, "v2": 105_829}[version],
                }
                for version, url in COMMANDS.items()
                for part in ("", "-sample")
            },
        ),
    ),
)
