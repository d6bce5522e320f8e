"""Prints what the chart renders with an HPA, 8 slots and otherwise its defaults. Runs in the Python of the chart's tests.

    target/chart-venv/bin/python tests/autoscaling/render.py [values.yaml]
"""

import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "chart"))
import helm

VALUES = {
    "autoscaling": {"mode": "hpa"},
    "image": {"repository": "registry.example.com/bellhop"},
    "postgres": {"existingSecret": "bellhop-database"},
    "config": {
        "pubsub": {"project": "my-project", "subscription": "chat-events"},
        "worker": {"concurrency": 8},
        "handler": {"url": "https://handler.example.com/events", "unauthenticated": True},
    },
}


def merged(base: dict, over: dict) -> dict:
    both = {key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in over.items()}
    return base | both


if __name__ == "__main__":
    over = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else {}
    yaml.safe_dump_all(helm.render(merged(VALUES, over)).objects, sys.stdout)
