#!/usr/bin/env bash
# Lints everything that is not Rust: shell scripts, YAML, Dockerfile, GitHub workflows, and the names docs use for metrics.
# Sets up what it needs under target/; safe to run again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
venv=$root/target/lint

if ! cmp -s tests/lint/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  if ! python3 -m venv "$venv"; then
    echo 'Missing: python3 with venv (apt-get install python3-venv)' >&2
    exit 1
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/lint/requirements.txt
  cp tests/lint/requirements.txt "$venv/requirements.txt"
fi
PATH=$venv/bin:$PATH

# Committed or about to be; what git ignores is nobody's source.
files() {
  git ls-files --cached --others --exclude-standard --deduplicate "$@"
}

failed=0
# check NAME COMMAND...: all linters run, however many of them complain.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "ok   $name"
  else
    echo "FAIL $name" >&2
    failed=1
  fi
}

# Chart templates are YAML only once they are rendered; tests/chart looks at those.
mapfile -t yaml < <(files '*.yml' '*.yaml' | grep -v '^charts/[^/]*/templates/')
# By name, or by their first line, as .ci/run.
mapfile -t shell < <({
  files '*.sh'
  files -z | xargs -0 awk 'FNR == 1 && /^#!.*[\/ ](ba)?sh$/ {print FILENAME} {nextfile}'
} | sort -u)
mapfile -t workflows < <(files '.github/workflows/*.yml')

check "shellcheck (${#shell[@]} scripts)" shellcheck --external-sources --severity=warning "${shell[@]}"
check "yamllint (${#yaml[@]} files)" yamllint --strict --config-file tests/lint/yamllint.yaml "${yaml[@]}"
check hadolint hadolint Dockerfile
check "actionlint (${#workflows[@]} workflows)" actionlint -shellcheck "$venv/bin/shellcheck" -pyflakes= "${workflows[@]}"
check zizmor zizmor --offline --quiet --persona=pedantic .github

# Who publishes is not known here: a fork must not have to look for somebody else's name in what builds and releases.
no_owner() {
  ! files Dockerfile compose.yaml .github | xargs grep -nE '(github\.com|ghcr\.io)/(OWNER|example)\b' >&2
}
check "no made-up owner" no_owner

# A metric that is named somewhere must be one that bellhop exports: docs/OPERATIONS.md lists them, and a test holds it to that.
metrics_exist() {
  local unknown
  unknown=$(
    files deploy docs README.md | grep -v '^docs/OPERATIONS.md$' | xargs grep -ohE '\bbellhop_[a-z][a-z_]*_(total|seconds|info|up|events|in_flight|slots|paused|stranded|stale)\b' |
      sort -u | while IFS= read -r name; do grep -qF "\`$name\`" docs/OPERATIONS.md || echo "$name"; done
  )
  [[ -z $unknown ]] || { printf 'docs/OPERATIONS.md does not know:\n%s\n' "$unknown" >&2; return 1; }
}
check "metric names" metrics_exist

exit "$failed"
