"""What is known about metric names: from the table in docs/OPERATIONS.md, from a scrape, and from other exporters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What a target's labels add to every series.
TARGET = {"namespace", "job", "pod", "instance"}
# kube-state-metrics and Prometheus itself: name -> labels that may be selected by.
FOREIGN = {
    "up": TARGET,
    "kube_pod_container_status_restarts_total": {"namespace", "pod", "container"},
    "kube_horizontalpodautoscaler_status_condition": {"namespace", "horizontalpodautoscaler", "condition", "status"},
    "kube_horizontalpodautoscaler_status_current_replicas": {"namespace", "horizontalpodautoscaler"},
    "kube_horizontalpodautoscaler_status_desired_replicas": {"namespace", "horizontalpodautoscaler"},
    "kube_horizontalpodautoscaler_spec_min_replicas": {"namespace", "horizontalpodautoscaler"},
    "kube_horizontalpodautoscaler_spec_max_replicas": {"namespace", "horizontalpodautoscaler"},
}
# What the scraped bellhop, which has no PostgreSQL, does not have.
OF_POSTGRES = {"bellhop_db_acquire_duration_seconds", "bellhop_db_pool_connections"}
NAME = re.compile(r"\b(?:(?:bellhop|process|kube)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Documented:
    kind: str
    labels: frozenset[str]


def documented(page: Path = ROOT / "docs" / "OPERATIONS.md") -> dict[str, Documented]:
    """The rows of the metrics table."""
    rows = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `bellhop_"):
            name, kind, labels = (cell.strip() for cell in line.split("|")[1:4])
            rows[name.strip("`")] = Documented(kind, frozenset(re.findall(r"\w+", labels)))
    return rows


def scraped(path: Path) -> dict[str, dict[str, set[str]]]:
    """Name -> label -> its values, of every series in a scrape; histograms by their family's name."""
    text = path.read_text(encoding="utf-8")
    histograms = set(re.findall(r"^# TYPE (\w+) histogram$", text, re.MULTILINE))
    found: dict[str, dict[str, set[str]]] = {}
    for line in text.splitlines():
        match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ", line)
        if not match or line.startswith("#"):
            continue
        labels = found.setdefault(family(match[1], histograms), {})
        for label, _, value in MATCHER.findall(match[2] or ""):
            labels.setdefault(label, set()).add(value)
    return found


def family(name: str, histograms: set[str]) -> str:
    """The histogram that a name with _bucket, _sum or _count belongs to, else the name itself."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if base in histograms else name


def problems(expr: str, documented: dict[str, Documented], scrape: dict[str, dict[str, set[str]]] | None) -> list[str]:
    """What is wrong with the names, labels and values in an expression."""
    found = []
    histograms = {name for name, row in documented.items() if row.kind == "histogram"}
    # Texts are not names.
    bare = re.sub(r'\bby \([^)]*\)', "", expr)
    for match in NAME.finditer(bare):
        shown = match[0].split("{")[0]
        name = family(shown, histograms)
        if name in histograms and name == shown:
            found.append(f"{name} is a histogram: it has no series of that name")
        matchers = MATCHER.findall(match[1] or "")
        if name in documented:
            allowed = documented[name].labels | TARGET | ({"le"} if shown.endswith("_bucket") else set())
        elif name in FOREIGN:
            allowed = FOREIGN[name]
        elif name.startswith("process_") and (scrape is None or name in scrape):
            allowed = TARGET
        else:
            found.append(f"{name} is not exported")
            continue
        for label, operator, value in matchers:
            if label not in allowed:
                found.append(f"{name} has no label {label}")
            known = (scrape or {}).get(name, {}).get(label)
            # Only where every value is there from the start; others appear with the first event.
            if not known or name not in documented or not (documented[name].kind == "counter" or label == "reason"):
                continue
            given = value.split("|") if operator in ("=~", "!~") and re.fullmatch(r"[\w|]+", value) else [value]
            found += [f"{name} has no {label} {one!r}" for one in given if one not in known]
    return found


def missing(documented: dict[str, Documented], scrape: dict[str, dict[str, set[str]]]) -> list[str]:
    """Differences between table and scrape."""
    unknown = [name for name in scrape if name.startswith("bellhop_") and name not in documented]
    found = [f"{name} is exported and not documented" for name in unknown]
    for name, row in documented.items():
        if name in scrape:
            shown = set(scrape[name]) - {"le"}
            if shown != row.labels:
                found.append(f"{name} has the labels {sorted(shown)}, documented are {sorted(row.labels)}")
        elif name not in OF_POSTGRES:
            found.append(f"{name} is documented and not exported")
    return found
