#!/usr/bin/env bash
# Prints where an OCI registry is.
exec "$(dirname "$0")/../debian.sh" docker-registry docker-registry \
  'the chart is pushed to an OCI registry and pulled back' \
  'apt-get install docker-registry'
