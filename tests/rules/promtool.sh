#!/usr/bin/env bash
# Prints where promtool is.
exec "$(dirname "$0")/../debian.sh" promtool prometheus \
  'alerts and dashboards are checked with it' \
  'apt-get install prometheus, or https://prometheus.io/download'
