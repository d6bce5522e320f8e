"""What is written beside the chart is true."""

from __future__ import annotations

import re

import yaml

import helm
import readme

VALUES = yaml.safe_load((helm.CHART / "values.yaml").read_text())


def test_the_table_of_values_is_fresh():
    assert (helm.CHART / "README.md").read_text() == readme.fresh(), "run: target/chart-venv/bin/python tests/chart/readme.py"


def test_every_value_is_described():
    known = {path for path, _ in readme.described((helm.CHART / "values.yaml").read_text())}

    def check(tree: dict, prefix: str = "") -> set[str]:
        missing = set()
        for key, value in tree.items():
            path = f"{prefix}{key}"
            if path in known:
                continue
            if isinstance(value, dict) and value:
                missing |= check(value, f"{path}.")
            else:
                missing.add(path)
        return missing

    assert check(VALUES) == set()


def test_each_renamed_value_is_in_the_upgrade_notes():
    notes = (helm.CHART / "UPGRADING.md").read_text()
    renamed = re.findall(r'\(list "([\w.]+)" \(hasKey', (helm.CHART / "templates" / "_validate.tpl").read_text())

    assert len(renamed) == 7
    for name in renamed:
        assert f"`{name}`" in notes


def test_the_chart_the_daemon_and_the_image_are_of_one_version():
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    crate = re.search(r'^\[package\]\n(?:[^\[].*\n)*?version = "([^"]+)"', (helm.ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

    # A release is one tag for all: the workflow puts it into both, and the image's default tag is appVersion.
    assert chart["appVersion"] == chart["version"] == crate
