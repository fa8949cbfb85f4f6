"""Does once what costs more the first time; imported by the process that forks others."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

from tests.crash.metadata_scenes import SCENES, prepare_table, upsert

with tempfile.TemporaryDirectory() as _folder:
    _scene, _path = SCENES["compact"], Path(_folder) / "table"
    prepare_table(_path, _scene)
    upsert(str(_path), _scene.given)
# what is there by now need not be looked at again in every process
gc.freeze()
