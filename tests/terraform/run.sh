#!/usr/bin/env bash
# Formats, validates and tests deploy/terraform without registry, network or credentials: a stand-in for hashicorp/google
# (provider.py) knows its arguments, and the tests mock its answers. Sets up what it needs; safe to run again.
#
#   tests/terraform/run.sh            everything; terraform must be there
#   tests/terraform/run.sh names      the part that needs no terraform: syntax, and names of arguments
#   tests/terraform/run.sh any        that part, and the rest where terraform is there; says so where it is not
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
module=$root/deploy/terraform
work=$root/target/terraform
at_least=1.7
what=${1:-everything}

# The user's own Terraform settings must not decide what the tests say.
for name in $(compgen -e TF_ || true); do unset "$name"; done

python=$work/venv/bin/python
if ! cmp -s "$here/requirements.txt" "$work/venv/requirements.txt"; then
  rm -rf "$work/venv"
  if ! python3 -m venv "$work/venv"; then
    echo 'Missing: python3 with venv (apt-get install python3-venv)' >&2
    exit 1
  fi
  "$python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$work/venv/requirements.txt"
fi

"$python" "$here/names.py" "$module"
[[ $what != names ]] || exit 0

if ! command -v terraform >/dev/null; then
  if [[ $what == any ]]; then
    printf 'Not done: format, validation and tests of deploy/terraform, which need terraform %s or newer.\n%s\n' "$at_least" \
      '  The workflow Lint does them. Here: https://developer.hashicorp.com/terraform/install, then make terraform.' >&2
    exit 0
  fi
  printf 'Missing: terraform %s or newer\n  why: the module in deploy/terraform is checked with it\n  how: %s\n' "$at_least" \
    'https://developer.hashicorp.com/terraform/install, or your package manager (brew install hashicorp/tap/terraform)' >&2
  exit 1
fi
export TF_CLI_CONFIG_FILE=$work/terraformrc TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
echo 'disable_checkpoint = true' >"$TF_CLI_CONFIG_FILE"
version=$(terraform version -json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["terraform_version"])')
if [[ $(printf '%s\n' "$at_least" "$version" | sort -V | head -n 1) != "$at_least" ]]; then
  echo "terraform $version is too old: $at_least is needed" >&2
  exit 1
fi

# One stand-in for all: Terraform would start another for each of its tests. It says how to reach it as a line of shell.
coproc stand_in { exec "$python" -u "$here/provider.py" --dev 2>"$work/provider.log"; }
stand_in_pid=$!
trap 'kill "$stand_in_pid" 2>/dev/null || true' EXIT
while IFS= read -r line <&"${stand_in[0]}"; do
  if [[ $line =~ TF_REATTACH_PROVIDERS=\'(.*)\' ]]; then
    export TF_REATTACH_PROVIDERS=${BASH_REMATCH[1]}
    break
  fi
done
if [[ -z ${TF_REATTACH_PROVIDERS:-} ]]; then
  echo "The stand-in for hashicorp/google does not start:" >&2
  cat "$work/provider.log" >&2
  exit 1
fi

terraform fmt -check -diff -recursive "$module"
echo "Formatted"

# Everything Terraform says where it fails; otherwise only the lines that begin so: it remarks each time, at length, that a
# provider was put in place by hand.
quietly() {
  local lines=$1 said status=0
  shift
  said=$("$@" 2>&1) || status=$?
  if ((status != 0)); then
    printf '%s\n' "$said" >&2
    exit "$status"
  fi
  printf '%s\n' "$said" | grep -E "$lines" || true
}

for folder in "$module" "$module"/examples/*/; do
  folder=${folder%/}
  export TF_DATA_DIR=$work/data/${folder##*/}
  [[ $folder == "$module" ]] || quietly '^Error' terraform -chdir="$folder" get -no-color
  quietly '^Error' terraform -chdir="$folder" validate -no-color
  echo "Valid: ${folder#"$root"/}"
done

# What docs/DEPLOYMENT.md has people write, with this module in the place of the released one.
mkdir -p "$work/deployment"
awk '/^```hcl$/ {on = 1; next} /^```$/ {if (on) exit} on' "$root/docs/DEPLOYMENT.md" |
  sed "s|source *= \"git::.*\"|source = \"../../../deploy/terraform\"|" >"$work/deployment/main.tf"
export TF_DATA_DIR=$work/data/deployment
quietly '^Error' terraform -chdir="$work/deployment" get -no-color
quietly '^Error' terraform -chdir="$work/deployment" validate -no-color
terraform fmt -check -diff "$work/deployment" >/dev/null || { echo 'docs/DEPLOYMENT.md: main.tf is not formatted' >&2 && exit 1; }
grep -q 'helm_values' "$work/deployment/main.tf"
echo "Valid: main.tf of docs/DEPLOYMENT.md"

export TF_DATA_DIR=$work/data/terraform
quietly '^(Success!|  run )' terraform -chdir="$module" test -no-color
