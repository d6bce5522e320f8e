#!/bin/sh
# A bellhop handler that is a program: the event on stdin, the reply on stdout, the verdict as exit code.
set -eu
state=${STATE_DIR:-/tmp/bellhop-handler}
mkdir -p "$state"
answer=$state/$BELLHOP_EVENT_ID.json

# An earlier attempt may still be at it: nothing was done, come again.
exec 9> "$answer.lock"
flock -n 9 || exit 75

# The same event may come again, with a higher BELLHOP_EPOCH: it gets the answer it got.
if [ -e "$answer" ]; then
  exec cat "$answer"
fi

event=$(cat)
case $event in
  '{'*) ;;
  *) echo "not an event" >&2; exit 65 ;; # no retry will help
esac

# The bot itself. Any failure here ends the script with an exit code that bellhop takes as "failed".
case $BELLHOP_EVENT_TYPE in
  MESSAGE) printf '{"text": "A message of %s characters"}\n' "${#event}" > "$answer.new" ;;
  *) : > "$answer.new" ;;
esac

mv "$answer.new" "$answer"
cat "$answer"
