#!/usr/bin/env bash
# Prints bellhop's alerts for one deployment, from rules.yaml beside it. Without the chart, or for Google's managed Prometheus:
#
#   deploy/prometheus/render.sh --runbooks URL [--job JOB] [--namespace NAMESPACE] [--hpa NAME] [--gmp]
#
#   --runbooks   where those who are woken can read docs/runbooks; becomes each alert's runbook_url
#   --job        the scrape job (bellhop); of a PodMonitoring: its name, which is the release's
#   --namespace  what the targets' label `namespace` says (bellhop)
#   --hpa        the HorizontalPodAutoscaler (bellhop); of KEDA: keda-hpa-…
#   --gmp        as a Rules object of Google's managed Prometheus, to be applied with kubectl
set -euo pipefail
rules=$(dirname "$0")/rules.yaml

wrong() {
  printf '%s\n\n' "$1" >&2
  sed -n '4,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

job=bellhop namespace=bellhop hpa=bellhop runbooks='' gmp=
while (($#)); do
  case $1 in
    --gmp) gmp=1 && shift && continue ;;
    --job | --namespace | --hpa | --runbooks) (($# > 1)) || wrong "$1 needs a value" ;;
    *) wrong "Unknown: $1" ;;
  esac
  case $1 in
    --runbooks) [[ $2 =~ ^https?://[^[:space:]\|\&\"\'\\]+$ ]] || wrong "$1 $2 is not an address (https://…)" ;;
    *) [[ $2 =~ ^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$ ]] || wrong "$1 $2 is not a name" ;;
  esac
  declare "${1#--}=$2"
  shift 2
done
[[ $runbooks ]] || wrong '--runbooks is needed'

filled() {
  sed -E -e '/^#/d' \
    -e "s|job=\"bellhop\"|job=\"$job\"|g" \
    -e "s|namespace=\"bellhop\"|namespace=\"$namespace\"|g" \
    -e "s|horizontalpodautoscaler=\"bellhop\"|horizontalpodautoscaler=\"$hpa\"|g" \
    -e "s|^( *runbook_url: ).*/([A-Za-z]+\.md)$|\1${runbooks%/}/\2|" "$rules"
}

if [[ $gmp ]]; then
  printf 'apiVersion: monitoring.googleapis.com/v1\nkind: Rules\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n' "$job" "$namespace"
  filled | sed 's/^./  &/'
else
  filled
fi
