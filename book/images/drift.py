"""Draw README's picture from the committed table of chapter 1: python book/images/drift.py"""

from pathlib import Path

import pandas as pd

from pullpush.show import palette
from pullpush.studies.forces import figures

here = Path(__file__).parent
palette.use_style()
steps = pd.read_csv(here.parents[1] / "executed" / "quick" / "01-forces.steps.csv")
panels = {"gradient_drift_tangent": "the gradient", "update_drift_tangent": "the step that was taken"}
figures.drift_curves(steps, panels).savefig(here / "drift.png", dpi=110)
