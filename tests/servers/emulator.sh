#!/usr/bin/env bash
# Google's Pub/Sub emulator.
#
#   emulator.sh find        prints the path of the emulator's jar; fails when there is none
#   emulator.sh run PORT    becomes the emulator, on the loopback (exec: the caller's process id is the server's)
set -euo pipefail

find_jar() {
  local jar root
  if [[ -n ${PUBSUB_EMULATOR_JAR:-} ]]; then
    [[ -f $PUBSUB_EMULATOR_JAR ]] && echo "$PUBSUB_EMULATOR_JAR"
    return
  fi
  for root in "${CLOUDSDK_ROOT_DIR:-}" /usr/lib/google-cloud-sdk /usr/share/google-cloud-sdk /usr/local/google-cloud-sdk \
    /opt/google-cloud-sdk "$HOME/google-cloud-sdk" /snap/google-cloud-sdk/current /snap/google-cloud-cli/current \
    /opt/homebrew/share/google-cloud-sdk /opt/homebrew/Caskroom/google-cloud-sdk/latest/google-cloud-sdk; do
    for jar in "$root"/platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar; do
      if [[ -n $root && -f $jar ]]; then
        echo "$jar"
        return 0
      fi
    done
  done
  return 1
}

case ${1:?emulator.sh needs a command} in
  find)
    find_jar
    ;;
  run)
    port=${2:?}
    jar=$(find_jar) || { echo "Google's Pub/Sub emulator was not found" >&2; exit 1; }
    # Quick start matters more than peak speed; the heap is bounded because several emulators run at once. It keeps all
    # it was ever sent: tests/throughput.py needs more.
    exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Xmx${BELLHOP_TEST_EMULATOR_HEAP:-384m}" -jar "$jar" --host=127.0.0.1 --port="$port"
    ;;
  *)
    echo "emulator.sh: no command $1" >&2
    exit 2
    ;;
esac
