"""How big a run is: one row a profile, read by every chapter.

A profile is data. A chapter asks for `profile("quick")` and uses its fields; nothing else depends on the name. A
profile of your own is a YAML file with the fields that differ from the one it is `like`:

    like: full
    audio: whisper
    encoder_options: {audio_model: /models/whisper-small, text_model: /models/roberta-base}
    dataset: clotho
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from pullpush.errors import DataNotFoundError, PullPushError, SettingError, looked_up, unknown
from pullpush.lab.root import DEFAULT, SUFFIXES
from pullpush.settings import Count, check_fields, check_setting, read_yaml

NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


@dataclass(frozen=True)
class Profile:
    """The size of a run.

    Attributes:
        name: what `--profile` takes.
        world: keyword arguments of `pullpush.data.scenes.world.WorldConfig`: the bank and how many scenes.
        audio, text: names of the encoders.
        dim: dimensions of the joint space.
        epochs: passes over the training scenes.
        batch_size: pairs in a batch.
        seeds: how many training runs a comparison averages over.
        about: one line for `pullpush list`.
        points: an experiment has at most so many seeds, numbers of each that varies (`Experiment.reduced`), and
            galleries of test clips; None: all.
        encoder_options: keyword arguments of `encoders.create`, such as `audio_model`: weights in a folder of yours.
        fine_tuning: fields of the recipe where the audio encoder is trained, too; pretrained ones want a low rate.
        dataset: a real dataset (`data.recordings.registry`) for the chapters that can take one; "" for scenes.
        clips: keyword arguments of `data.recordings.corpora.CorpusConfig`: how much of it, and `seconds`.
        other: a second dataset, to test what was trained on the first one.
        zero_shot: labelled datasets for zero-shot classification.
        pretrained: fields that differ in chapters that hear through a published audio encoder (see `listening`); no
            part of what profiles are compared by, as the fields that it gives are.
        file: the YAML file that it comes from.
    """

    name: str
    world: Mapping[str, Any]
    audio: str
    text: str
    dim: Count
    epochs: Count
    batch_size: Annotated[int, Field(ge=2)]  # a batch of one has nothing to push away
    seeds: Annotated[int, Field(ge=1, le=1000)]  # each is a run
    about: str
    points: Count | None = field(default=None, compare=False)  # decides how many runs, and nothing of one
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    fine_tuning: Mapping[str, Any] = field(default_factory=dict)
    dataset: str = ""
    clips: Mapping[str, Any] = field(default_factory=dict)
    other: str = ""
    zero_shot: tuple[str, ...] = ()
    pretrained: Mapping[str, Any] = field(default_factory=dict, compare=False)
    file: Path | None = None

    def __post_init__(self) -> None:
        check_fields(self, of=f"profile {self.name!r}", but=("file",))
        for name in MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "zero_shot", tuple(self.zero_shot))

    @property
    def source(self) -> str:
        """What `--profile` takes for it: its file, or its name."""
        return str(self.file or self.name)

    @property
    def content(self) -> "Profile":
        """What decides numbers, for keys: the same profile, whatever it is called and wherever it comes from.

        >>> replace(PROFILES["quick"], name="mine", about="as quick").content == PROFILES["quick"].content
        True
        """
        return replace(self, name="", about="", file=None)

    @property
    def listening(self) -> "Profile":
        """This profile with a published audio encoder, for the chapters that hear through one; itself, if it has one.

        >>> PROFILES["quick"].audio, PROFILES["quick"].listening.audio
        ('cnn', 'yamnet')
        """
        from pullpush.encoders import AUDIO  # here, so that `pullpush --help` does not wait for torch

        if AUDIO[self.audio].pretrained:
            return self
        return self.changed(self.pretrained)

    def changed(self, given: Mapping[str, Any]) -> "Profile":
        """This profile with other fields: mappings are merged, and the options of an encoder that gives way to another
        go with it.
        """
        gone = tuple(
            f"{side}_" for side in ("audio", "text") if given.get(side, getattr(self, side)) != getattr(self, side)
        )
        options = {name: value for name, value in self.encoder_options.items() if not name.startswith(gone)}
        base = replace(self, encoder_options=options)
        merged = {name: {**getattr(base, name), **given[name]} for name in MAPPINGS if name in given}
        return replace(base, **{**given, **merged})


MAPPINGS = ("world", "encoder_options", "fine_tuning", "clips", "pretrained")
_OWN = (
    Profile(
        name="smoke",
        world={"bank": "synthetic", "n_train": 64, "n_valid": 24, "n_test": 24, "scene": {"duration": 3.0}},
        audio="cnn",
        text="hashed",
        dim=32,
        epochs=2,
        batch_size=16,
        seeds=2,
        about="synthetic sounds, no network, tiny models: does it run?",
        points=2,
        encoder_options={"audio_channels": (8, 16, 32, 64), "audio_hop": 0.04},
        pretrained={"audio": "yamnet", "encoder_options": {"audio_pretrained": False}},
    ),
    Profile(
        name="quick",
        world={"bank": "tuxpaint", "n_train": 3000, "n_valid": 500, "n_test": 500},
        audio="cnn",
        text="use",
        dim=256,
        epochs=4,
        batch_size=24,  # as in SupCLAP
        seeds=3,
        about="real recordings on a laptop: minutes a chapter on two cores",
        pretrained={"audio": "yamnet", "fine_tuning": {"lr": 3e-4}},
    ),
    Profile(
        name="full",
        world={"bank": "tuxpaint", "n_train": 40_000, "n_valid": 2000, "n_test": 2000},
        audio="clap",
        text="roberta",
        dim=1024,
        epochs=10,  # as in SupCLAP
        batch_size=24,
        seeds=5,
        about="pretrained encoders, 40,000 scenes, AudioCaps in chapters 2 and 3: needs a GPU and the hub",
        fine_tuning={"lr": 5e-5},  # as in SupCLAP
        dataset="audiocaps",
        other="clotho",
        zero_shot=("esc50", "urbansound8k", "vggsound"),
    ),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({row.name: row for row in _OWN})


def profile(name: str | Path = DEFAULT) -> Profile:
    """The profile called `name`, or that of a YAML file.

    Raises:
        UnknownNameError: no such profile, or field of one; the message gives the nearest names.
        DataNotFoundError: no such file.
        PullPushError: the file is not a profile.
    """
    check_setting("profile", name, str)
    return _from_file(Path(name)) if Path(name).suffix in SUFFIXES else looked_up("profile", str(name), PROFILES)


def _from_file(path: Path, seen: tuple[Path, ...] = ()) -> Profile:
    """A profile called by the file's stem: what it says, over what it is `like`; seen: files that are like this one."""
    if not path.is_file():
        raise DataNotFoundError(f"no profile at {path.absolute()}: give {', '.join(PROFILES)}, or a YAML file's path")
    if path.resolve() in seen:
        raise SettingError(f"{path} is like itself: its line `like:` must lead to one of {', '.join(PROFILES)}")
    given = read_yaml(path)
    if not NAME.fullmatch(path.stem):  # folders are called by it, and pages show it
        raise SettingError(f"a profile's name is letters, digits, -, _ and dots between them, got the file {path.name}")
    if path.stem in PROFILES:
        raise PullPushError(f"a profile called {path.stem!r} is there already: give {path} another name")
    like = given.pop("like", DEFAULT)
    check_setting("like", like, str, of=path.name)
    base = (
        _from_file(Path(like), (*seen, path.resolve()))
        if Path(like).suffix in SUFFIXES
        else looked_up("profile", like, PROFILES)
    )
    for name in given.keys() & {"name", "file"}:  # the file gives both
        raise unknown("field of a profile", name, {item.name for item in fields(Profile)} - {"name", "file"})
    check_fields(given, of=f"a profile, {path.name}", kind=Profile)
    named = {"name": path.stem, "about": f"like {base.name}, from {path.name}", "file": path.absolute()}
    found = base.changed(named | given)
    _check(found, given, path)
    return found


def _check(found: Profile, given: Mapping[str, Any], path: Path) -> None:
    """Require the fields of worlds, corpora and recipes, in their types and ranges, in what a file says of them; then
    encoders, their options, banks and datasets that there are: a name that is mistyped makes no gap.
    """
    from pullpush.data.banks import BANKS
    from pullpush.data.recordings.corpora import CorpusConfig
    from pullpush.data.recordings.registry import find
    from pullpush.data.scenes.world import WorldConfig
    from pullpush.encoders import AUDIO, TEXT
    from pullpush.encoders.dual import options_of
    from pullpush.training.recipes import Recipe

    merged = {name: getattr(found, name) for name in MAPPINGS if name in given}
    kinds = {"world": WorldConfig, "clips": CorpusConfig, "fine_tuning": Recipe, "pretrained": Profile}
    for name, kind in kinds.items():
        check_fields(merged.get(name, {}), of=f"{path.name}: {name}", kind=kind, but=("scene", "seconds"))
    corpus: dict[str, Any] = {"dataset": "", **merged.get("clips", {})}
    try:
        WorldConfig(**merged.get("world", {}))
        CorpusConfig(**corpus)
    except ValueError as error:
        raise SettingError(f"{path.name}: {error}") from error
    options_of(found.encoder_options, audio=AUDIO[found.audio].make, text=TEXT[found.text].make)
    BANKS[found.world.get("bank", "tuxpaint").partition(":")[0]]
    for name in filter(None, (found.dataset, found.other, *found.zero_shot)):
        find(name)
