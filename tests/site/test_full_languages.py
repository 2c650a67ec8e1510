"""Chapter 3 on a real dataset whose captions were translated, as the full profile runs it, in miniature."""

import miniature
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab import material, session
from pullpush.lab.gaps import NotKeptError
from pullpush.site.cli import main
from pullpush.studies.consistency.data import Grounds

pytestmark = pytest.mark.deep

OWN = {"like": str(miniature.ROOT / "tests" / "fine.yaml"), "dataset": "clotho", "epochs": 1, "batch_size": 4, "dim": 8}


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    """A profile on a small Clotho with captions in eight languages, as a user would write it."""
    folder = tmp_path_factory.mktemp("translated")
    miniature.clotho(folder / "data")
    place = folder / "data/CLOTHO_v2.1"
    known = [pd.read_csv(path) for path in sorted((place / "clotho_csv_files").glob("clotho_captions_*.csv"))]
    for code in LANGUAGES[1:]:
        told = pd.concat(known).replace(r"^A (.*)", rf"{code} \1", regex=True)
        told.to_csv(place / f"captions.{code}.csv", index=False)
    (folder / "mini.yaml").write_text(yaml.safe_dump(OWN))
    with miniature.at_home(folder):
        yield folder / "mini.yaml"


@pytest.mark.parametrize("chapter", ["03-consistency", "03-consistency-lab"])
def test_the_chapter_runs_on_it_with_all_that_is_long(mini, chapter):
    out = mini.parent / chapter
    long = ["-p", "compute_long", "true"] if chapter.endswith("lab") else []
    done = CliRunner().invoke(main, ["run", chapter, "--profile", str(mini), *long, "--out", str(out)])
    assert done.exit_code == 0, done.output
    claims = pd.read_csv(out / f"{chapter}.claims.csv")
    assert (claims["value"].notna() | claims["reason"].notna()).all()
    judged = claims.set_index("id")["value"]
    measured = "atri-t1-kcl-t2a-r1-audiocaps" if long else "atri-f1-random-language-inconsistent"
    assert pd.notna(judged[measured])


def test_real_captions_are_translations_and_told_in_one_way(mini):
    book = session.start("03-consistency-lab", profile=str(mini), out=mini.parent / "session")
    ground = Grounds(material.of(book))
    assert ground.translated is ground.data()
    with pytest.raises(NotKeptError, match="stamps"):
        ground.stamps()
    assert ground.view("aligned/nothing").data is ground.view("frozen").data
    assert ground.translated.test.captions("fra")[0][0].startswith("fra ")
