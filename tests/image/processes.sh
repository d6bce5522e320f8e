# shellcheck shell=bash
# Sourced. Waiting for processes, finding and ending them.

# within SECONDS COMMAND...: runs it until it says yes, or the time is over.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

# descendant PID NAME: the first process below PID that has that name.
descendant() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    if [[ $(<"/proc/$child/comm") == "$2" ]]; then
      echo "$child"
      return 0
    fi
    descendant "$child" "$2" && return 0
  done
  return 1
}

# end_tree PID: kills it and all below it. A change of user makes a process forget that it was to end with its parent.
end_tree() {
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do end_tree "$child"; done
  kill -9 "$1" 2>/dev/null || true
}

# ended PID: it is gone, or only waits for its parent to look at it.
ended() {
  [[ ! -e /proc/$1 ]] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}
