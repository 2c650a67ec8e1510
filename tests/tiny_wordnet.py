"""A WordNet of a few words, in the files that wndb(5WN) describes."""

from pathlib import Path

LICENCE = "  1 This software and database is being provided to you  \n"
KINDS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
NUMBERS = {"noun": 1, "verb": 2, "adj": 5, "adv": 4}
SENSES = {
    "noun": [["dog", "domestic_dog", "Canis_familiaris", "hound"], ["dog", "cad"], ["bell", "alarm"], ["ox", "mouse"]],
    "verb": [["bark", "yelp"], ["ring", "sound", "chime"], ["hum", "drone"], ["die", "croak"], ["croak", "cronk"]],
    "adj": [["loud", "noisy(a)"], ["low", "gloomy"]],
    "adv": [["again", "anew"]],
}
FORMS = {"noun": ["mice mouse"], "verb": ["humming hum", "dying die", "rang ring"], "adj": [], "adv": []}
COUNTS = ["dog 1 9", "dog 1 2", "bark 2 4", "ring 2 3", "bell 1 3", "low 5 7", "loud 5 3"]


def write_wordnet(folder: Path) -> Path:
    """The files in a folder; a lemma's synsets are as frequent as they are listed."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, kind in KINDS.items():
        data, places = LICENCE, {}
        for synset in SENSES[part]:
            offset = len(data.encode())
            words = " ".join(f"{word} 0" for word in synset)
            data += f"{offset:08d} 05 {kind} {len(synset):02x} {words} 000 | a gloss  \n"
            for word in synset:
                places.setdefault(word.partition("(")[0].lower(), []).append(f"{offset:08d}")
        rows = [
            f"{word} {kind} {len(found)} 1 @ {len(found)} 0 {' '.join(found)}  "
            for word, found in sorted(places.items())
        ]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(LICENCE + "".join(f"{row}\n" for row in rows))
        (folder / f"{part}.exc").write_text("".join(f"{line}\n" for line in FORMS[part]))
    counted = [line.split() for line in COUNTS]
    (folder / "cntlist.rev").write_text("".join(f"{word}%{part}:05:00:: 1 {n}\n" for word, part, n in counted))
    return folder
