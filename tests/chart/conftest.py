"""What several files of tests use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import helm


@pytest.fixture(scope="session")
def bellhop() -> Path:
    path = Path(os.environ.get("BELLHOP_BIN", helm.ROOT / "target" / "debug" / "bellhop"))
    if not path.is_file():
        pytest.fail(f"the daemon is not at {path}: build it (cargo build), or set BELLHOP_BIN", pytrace=False)
    return path
