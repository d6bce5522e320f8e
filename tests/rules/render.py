"""Prints the PrometheusRule that the chart renders. Runs in the Python of the chart's tests.

    target/chart-venv/bin/python tests/rules/render.py podmonitor|podmonitoring|keda

Each is another job or autoscaler; the release is called chat, in the namespace apps.
"""

import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "chart"))
import helm
from scenarios import merge, scenario

SCRAPED_BY = {
    "podmonitor": merge(scenario("hpa"), {"metrics": {"podMonitor": {"enabled": True}}}),
    "podmonitoring": merge(scenario("hpa"), {"metrics": {"gmpPodMonitoring": {"enabled": True}}}),
    "keda": scenario("keda"),
}

if __name__ == "__main__":
    rule = {"metrics": {"prometheusRule": {"enabled": True, "runbookBaseUrl": "https://runbooks.example/bellhop"}}}
    yaml.safe_dump(helm.render(merge(SCRAPED_BY[sys.argv[1]], rule)).one("PrometheusRule"), sys.stdout)
