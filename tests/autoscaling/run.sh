#!/usr/bin/env bash
# Judges the autoscaler that the chart renders, without a cluster; then whether docs/AUTOSCALING.md shows its figures.
#
#   tests/autoscaling/run.sh                 the chart's own output where its test environment is, else the fixture
#   tests/autoscaling/run.sh MANIFEST.yaml   that output of a chart; SLOTS = its worker.concurrency (8)
#
# BELLHOP_CHART_PYTHON names the Python of the chart's tests where it is not target/chart-venv/bin/python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d /tmp/bellhop-autoscaling.XXXXXX)
trap 'rm -rf "$dir"' EXIT

python=python3
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  printf '\nMissing: Python 3.10 or newer\n  why: the simulator is written in it\n  how: apt-get install python3 python3-venv\n' >&2
  exit 1
fi
if ! python3 -c 'import yaml' 2>/dev/null; then
  venv=$root/target/autoscaling-venv
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/python" -c 'import yaml' 2>/dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'PyYAML==6.0.3'
  python=$venv/bin/python
fi

chart_python=${BELLHOP_CHART_PYTHON:-$root/target/chart-venv/bin/python}
if (($#)); then
  HPA=$(realpath "$1")
elif [[ -x $chart_python && -f $root/tests/chart/helm.py ]]; then
  "$chart_python" "$here/render.py" >"$dir/rendered.yaml"
  HPA=$dir/rendered.yaml
else
  HPA=$here/fixtures/hpa.yaml
fi
export HPA PYTHONDONTWRITEBYTECODE=1
echo "Simulating ${HPA/#$dir\/rendered.yaml/what the chart renders}"
cd "$here"
"$python" -m unittest test_arithmetic test_loads
"$python" simulate.py --hpa "$HPA" --check "$root/docs/AUTOSCALING.md"
