#!/usr/bin/env bash
# Checks alerts and dashboard: against promtool, against each other, and against what the real daemon exports. The alerts as
# they stand, as the chart renders them, and as deploy/prometheus/render.sh does.
#
#   BELLHOP_BIN    the daemon (target/debug/bellhop)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
source=$root/charts/bellhop/files/rules.yaml

# Brings Python with PyYAML, and Helm.
"$root/tests/chart/setup.sh"
python=$root/target/chart-venv/bin/python
PROMTOOL=$("$here/promtool.sh")
export PROMTOOL PYTHONDONTWRITEBYTECODE=1

dir=$(mktemp -d /tmp/bellhop-rules.XXXXXX)
trap 'rm -rf "$dir"' EXIT

"$here/scrape.sh" >"$dir/metrics.txt"
"$PROMTOOL" check metrics <"$dir/metrics.txt"

# groups NAME FILE: the groups of a rule file, or of those under some object's spec, as $dir/NAME/rules.yaml.
groups() {
  echo "Alerts: $1"
  mkdir "$dir/$1"
  "$python" - "$2" >"$dir/$1/rules.yaml" <<'PYTHON'
import sys, yaml

with open(sys.argv[1], encoding="utf-8") as file:
    groups = [group for one in yaml.safe_load_all(file) if one
              for group in (one.get("spec") or one).get("groups", [])]
yaml.safe_dump({"groups": groups}, sys.stdout)
PYTHON
  "$PROMTOOL" check rules --lint=all "$dir/$1/rules.yaml" >/dev/null
}

# judge NAME FILE JOB NAMESPACE HPA RUNBOOKS: rules that select by these.
judge() {
  local tests=$dir/$1 job=$3 namespace=$4 hpa=$5 runbooks=$6 test
  groups "$1" "$2"
  for test in "$here"/*_test.yaml; do
    # Descriptions name the namespace too.
    sed -e "s/job\(=\"\|: \)bellhop/job\1$job/g" -e "s/namespace\(=\"\|: \)bellhop/namespace\1$namespace/g" \
      -e "s/horizontalpodautoscaler\(=\"\|: \)bellhop/horizontalpodautoscaler\1$hpa/g" \
      -e "/description:/s/ in bellhop / in $namespace /" -e "s|https://.*/\([A-Za-z]*\.md\)|$runbooks/\1|" \
      "$test" >"$tests/${test##*/}"
  done
  "$PROMTOOL" test rules "$tests"/*_test.yaml >"$tests/log" 2>&1 || { cat "$tests/log" && return 1; }
  (cd "$here" && RULES=$tests/rules.yaml RUNBOOKS=$runbooks SCRAPE=$dir/metrics.txt "$python" -m unittest --quiet test_house)
}

"$PROMTOOL" check rules --lint=all "$source"
judge source "$source" bellhop bellhop bellhop https://github.com/example/bellhop/blob/main/docs/runbooks

rendered() {
  "$python" "$here/render.py" "$1" >"$dir/$1.yaml"
  judge "$1" "$dir/$1.yaml" "$2" apps "$3" https://runbooks.example/bellhop
}
rendered podmonitor bellhop chat-bellhop
rendered podmonitoring chat-bellhop chat-bellhop
rendered keda bellhop keda-hpa-chat-bellhop

# Without the chart the same comes out, so it needs no tests of its own.
plain() {
  local name=$1
  "$root/deploy/prometheus/render.sh" "${@:2}" --job chat-bellhop --namespace apps --hpa chat-bellhop \
    --runbooks https://runbooks.example/bellhop/ >"$dir/$name.yaml"
  groups "$name" "$dir/$name.yaml"
  cmp "$dir/podmonitoring/rules.yaml" "$dir/$name/rules.yaml"
}
plain plain
plain gmp --gmp
