#!/usr/bin/env bash
# Prints where kubectl is.
exec "$(dirname "$0")/../debian.sh" kubectl kubernetes-client \
  'what the CronJobs of floors run is tried with it' \
  'apt-get install kubernetes-client, or https://kubernetes.io/docs/tasks/tools/'
