#!/usr/bin/env bash
# Installs Google's Pub/Sub emulator on a GitHub runner; tests/setup.sh finds it there.
set -euo pipefail
curl --fail --silent --show-error --location https://packages.cloud.google.com/apt/doc/apt-key.gpg |
  sudo gpg --dearmor --yes --output /usr/share/keyrings/cloud.google.gpg
echo 'deb [signed-by=/usr/share/keyrings/cloud.google.gpg] https://packages.cloud.google.com/apt cloud-sdk main' |
  sudo tee /etc/apt/sources.list.d/google-cloud-sdk.list
sudo apt-get update -qq
sudo apt-get install -y -qq --no-install-recommends google-cloud-cli-pubsub-emulator
