#!/usr/bin/env python3
"""Writes the table of values in charts/bellhop/README.md from the comments in values.yaml.

A comment line that begins with "# --" describes the key below it; a key without one is described by the keys inside it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

CHART = Path(__file__).resolve().parents[2] / "charts" / "bellhop"
BEGIN, END = "<!-- values: begin -->", "<!-- values: end -->"


def described(text: str) -> list[tuple[str, str]]:
    """(path, description) in order."""
    found, path, words = [], [], None
    for line in text.splitlines():
        if match := re.match(r"^\s*# -- (.*)$", line):
            words = match[1]
        elif match := re.match(r"^( *)([A-Za-z_]\w*):", line):
            depth = len(match[1]) // 2
            path = [*path[:depth], match[2]]
            if words is not None:
                found.append((".".join(path), words))
            words = None
    return found


def default_of(values: dict, path: str) -> str:
    at = values
    for key in path.split("."):
        at = at[key]
    shown = json.dumps(at, ensure_ascii=False)
    return f"`{shown}`" if len(shown) <= 60 else "see values.yaml"


def table() -> str:
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for path, words in described(text):
        cells = (f"`{path}`", default_of(values, path), words)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def fresh() -> str:
    """README.md as it should be."""
    text = (CHART / "README.md").read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    (CHART / "README.md").write_text(fresh())
