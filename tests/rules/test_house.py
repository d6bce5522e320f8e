"""What alerts, runbooks and dashboard owe each other, the chart, and the daemon.

RULES names the rule file (the chart's by default), RUNBOOKS the address its alerts lead to, SCRAPE what a running bellhop
exports, PROMTOOL the program.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

import metrics

ROOT = metrics.ROOT
SOURCE = ROOT / "charts" / "bellhop" / "files" / "rules.yaml"
RULES = Path(os.environ.get("RULES", SOURCE))
RUNBOOK_BASE = os.environ.get("RUNBOOKS", "https://github.com/example/bellhop/blob/main/docs/runbooks")
SCRAPE = Path(os.environ["SCRAPE"])
PROMTOOL = os.environ.get("PROMTOOL", "promtool")
DASHBOARD = ROOT / "charts" / "bellhop" / "files" / "dashboard.json"
RUNBOOKS = ROOT / "docs" / "runbooks"
SECTIONS = ["What it means", "What users notice", "How to look", "What to do", "When it resolves"]

DOCUMENTED = metrics.documented()
LIVE = metrics.scraped(SCRAPE)


def alerts(path=RULES):
    return [rule for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def panels():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]


def expressions():
    """Every PromQL expression of the dashboard, with the panel's title."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            if "expr" in target:
                yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        if "expr" in annotation:
            yield annotation["name"], annotation["expr"]
    for variable in board["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if found:
            yield f"variable {variable['name']}", found[1]


def plain(expr):
    """As Grafana sends it: with variables filled in."""
    return re.sub(r"\$\w+", "x", expr.replace("$__rate_interval", "4m"))


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


class Daemon(unittest.TestCase):
    def test_the_table_of_metrics_is_what_a_running_daemon_exports(self):
        self.assertEqual(metrics.missing(DOCUMENTED, LIVE), [])


class Alerts(unittest.TestCase):
    def test_every_name_label_and_value_in_an_expression_is_exported(self):
        for rule in alerts():
            with self.subTest(alert=rule["alert"]):
                self.assertEqual(metrics.problems(rule["expr"], DOCUMENTED, LIVE), [])

    def test_every_expression_ends_with_its_threshold(self):
        for rule in alerts():
            with self.subTest(alert=rule["alert"]):
                self.assertRegex(rule["expr"], r"(==|!=|>=|<=|>|<)\s*-?[0-9]+(\.[0-9]+)?\s*$")

    def test_every_selector_names_the_release(self):
        for rule in alerts(SOURCE):
            for found in metrics.NAME.finditer(re.sub(r"\bby \([^)]*\)", "", rule["expr"])):
                with self.subTest(alert=rule["alert"], selector=found[0]):
                    matchers = metrics.MATCHER.findall(found[1] or "")
                    labels = {label: value for label, operator, value in matchers if operator == "="}

                    self.assertEqual(labels.get("namespace"), "bellhop")
                    if not found[0].startswith("kube_"):
                        self.assertEqual(labels.get("job"), "bellhop")
                    if found[0].startswith("kube_horizontalpodautoscaler"):
                        self.assertEqual(labels.get("horizontalpodautoscaler"), "bellhop")

    def test_every_alert_says_how_urgent_it_is_what_is_wrong_and_where_to_read_on(self):
        names = [rule["alert"] for rule in alerts()]
        self.assertEqual(len(names), len(set(names)))
        for rule in alerts():
            with self.subTest(alert=rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                self.assertEqual(set(rule["annotations"]), {"summary", "description", "runbook_url"})
                self.assertEqual(rule["annotations"]["runbook_url"], f"{RUNBOOK_BASE}/{rule['alert']}.md")
                self.assertNotIn("{{", rule["annotations"]["summary"])

    def test_every_alert_is_shown_to_fire(self):
        tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*_test.yaml"))
        for rule in alerts():
            with self.subTest(alert=rule["alert"]):
                self.assertIn(f"[{{labels: '{{alertname=\"{rule['alert']}\"}}', value: 1}}]", tests)

    def test_the_copy_for_a_plain_prometheus_is_the_same_file(self):
        self.assertEqual((ROOT / "deploy" / "prometheus" / "rules.yaml").read_bytes(), SOURCE.read_bytes())


class Runbooks(unittest.TestCase):
    def test_every_alert_has_a_page_and_every_page_an_alert(self):
        pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}

        self.assertEqual(pages, {rule["alert"] for rule in alerts(SOURCE)})

    def test_every_page_answers_the_same_questions(self):
        for rule in alerts(SOURCE):
            with self.subTest(alert=rule["alert"]):
                text = (RUNBOOKS / f"{rule['alert']}.md").read_text(encoding="utf-8")

                self.assertTrue(text.startswith(f"# {rule['alert']}\n"))
                self.assertEqual(re.findall(r"^## (.*)$", text, re.MULTILINE), SECTIONS)
                self.assertIn(f"Severity: {rule['labels']['severity']}.", text)

    def test_every_metric_and_link_on_a_page_exists(self):
        for page in RUNBOOKS.glob("*.md"):
            text = page.read_text(encoding="utf-8")
            with self.subTest(page=page.name):
                self.assertEqual(metrics.problems(text, DOCUMENTED, LIVE), [])
                for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
                    target = page.parent / link if link else page
                    self.assertTrue(target.exists(), link)
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_the_index_lists_every_alert(self):
        index = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
        listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", index, re.MULTILINE)

        self.assertEqual(sorted(listed), sorted((rule["alert"], rule["labels"]["severity"]) for rule in alerts(SOURCE)))


class Dashboard(unittest.TestCase):
    def test_panel_ids_are_unique_and_panels_do_not_overlap(self):
        ids = [panel["id"] for panel in panels()]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in panels():
            grid = panel["gridPos"]
            columns, lines = (range(grid[start], grid[start] + grid[size]) for start, size in ("xw", "yh"))
            cells = {(x, y) for x in columns for y in lines}
            self.assertLessEqual(grid["x"] + grid["w"], 24)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_the_rows_are_there(self):
        rows = [panel["title"] for panel in panels() if panel["type"] == "row"]

        self.assertEqual(rows, ["Outcomes", "Scaling", "Pub/Sub", "Claims and quarantine", "Ends and beginnings", "Resources"])

    def test_every_panel_says_what_it_shows(self):
        for panel in panels():
            if panel["type"] != "row":
                self.assertTrue(panel["description"], panel["title"])

    def test_every_name_label_and_value_in_an_expression_is_exported(self):
        for title, expr in expressions():
            with self.subTest(panel=title, expr=expr):
                values = re.sub(r'"\$\w+"', '""', expr)

                self.assertEqual(metrics.problems(values, DOCUMENTED, LIVE), [])

    def test_every_metric_is_shown_somewhere(self):
        shown = "".join(expr for _, expr in expressions())

        self.assertEqual([name for name in DOCUMENTED if name not in shown], [])

    def test_subscriptions_are_called_as_terraform_calls_them(self):
        board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        named = {variable["name"]: variable.get("query") for variable in board["templating"]["list"]}
        variables = (ROOT / "deploy" / "terraform" / "variables.tf").read_text(encoding="utf-8")
        default = re.search(r'variable "subscription" {.*?default *= "([^"]+)"', variables, re.DOTALL)[1]

        self.assertEqual(named["subscription"], default)
        self.assertEqual(named["deadletter"], f"{default}-dead-letter")

    def test_every_variable_is_declared_and_used(self):
        text = DASHBOARD.read_text(encoding="utf-8")
        declared = {variable["name"] for variable in json.loads(text)["templating"]["list"]}
        used = {one or two for one, two in re.findall(r"\$(?:\{(\w+)\}|([a-z]\w*))", text)}

        self.assertEqual(used, declared)

    def test_every_expression_parses(self):
        exprs = [plain(expr) for _, expr in expressions()]
        rules = [{"record": f"dashboard:expression:{index}", "expr": expr} for index, expr in enumerate(exprs)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
            file.flush()
            command = [PROMTOOL, "check", "rules", "--lint=none", file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(rules)} rules found", done.stdout)


if __name__ == "__main__":
    unittest.main()
