#!/usr/bin/env bash
# Checks alerts and dashboard: against promtool, against each other, and against what the real daemon exports.
#
#   tests/rules/run.sh                   the chart's rule file as it stands
#   tests/rules/run.sh RULES.yaml        rules as the chart renders them: a rule file or a PrometheusRule
#
#   BELLHOP_BIN              the daemon (target/debug/bellhop)
#   JOB, NAMESPACE, HPA      what the rendered rules select by, where that is not bellhop
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

if ! command -v python3 >/dev/null; then
  printf '\nMissing: python3\n  why: rules, runbooks and dashboard are compared in it\n  how: apt-get install python3 python3-yaml\n' >&2
  exit 1
fi
python=python3
if ! python3 -c 'import yaml' 2>/dev/null; then
  venv=$root/target/rules-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/python" -c 'import yaml' 2>/dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'PyYAML==6.0.3'
  python=$venv/bin/python
fi
PROMTOOL=$("$here/promtool.sh")

dir=$(mktemp -d /tmp/bellhop-rules.XXXXXX)
trap 'rm -rf "$dir"' EXIT

# A PrometheusRule has the groups under its spec.
"$python" - "${1:-$root/charts/bellhop/files/rules.yaml}" >"$dir/rules.yaml" <<'PYTHON'
import sys, yaml

with open(sys.argv[1], encoding="utf-8") as file:
    groups = [group for one in yaml.safe_load_all(file) if one
              for group in (one.get("spec") or one).get("groups", [])]
yaml.safe_dump({"groups": groups}, sys.stdout, sort_keys=False)
PYTHON

for file in "$here"/*_test.yaml; do
  sed -e "s/job=\"bellhop\"/job=\"${JOB:-bellhop}\"/g" \
    -e "s/namespace=\"bellhop\"/namespace=\"${NAMESPACE:-bellhop}\"/g" \
    -e "s/horizontalpodautoscaler=\"bellhop\"/horizontalpodautoscaler=\"${HPA:-bellhop}\"/g" \
    "$file" >"$dir/${file##*/}"
done

if (($#)); then
  rm "$dir/annotations_test.yaml"
else
  "$PROMTOOL" check rules --lint=all "$root/charts/bellhop/files/rules.yaml"
fi
"$PROMTOOL" check rules --lint=all "$dir/rules.yaml" >/dev/null
"$PROMTOOL" test rules "$dir"/*_test.yaml

"$here/scrape.sh" >"$dir/metrics.txt"
"$PROMTOOL" check metrics <"$dir/metrics.txt"

export PROMTOOL PYTHONDONTWRITEBYTECODE=1
cd "$here"
RULES=$dir/rules.yaml SCRAPE=$dir/metrics.txt "$python" -m unittest test_house
