#!/usr/bin/env bash
# Checks every Postgres query against a database with the migrations applied, and the committed .sqlx/ against that.
#
#   queries.sh check    fails when a query does not fit the schema, or .sqlx/ is stale
#   queries.sh renew    writes .sqlx/ anew
#
# It does what `cargo sqlx prepare` does, without the need to install that. Run it through tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BELLHOP_TEST_POSTGRES_URL:?run this by make check or make sqlx}"
psql="$(tests/servers/postgres.sh find)/psql"

shopt -s nullglob
migrations=(migrations/*.sql)
if ((${#migrations[@]} == 0)); then
  echo "No migrations yet"
  exit 0
fi
database=queries_$$
"$psql" -q "$BELLHOP_TEST_POSTGRES_URL" -c "CREATE DATABASE $database"
export DATABASE_URL=${BELLHOP_TEST_POSTGRES_URL%/*}/$database
for migration in "${migrations[@]}"; do
  [[ $migration == *.down.sql ]] || "$psql" -q -v ON_ERROR_STOP=1 "$DATABASE_URL" -f "$migration"
done

fresh=$(mktemp -d "${TMPDIR:-/tmp}/bellhop-sqlx.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
# The macros write what the database answered to SQLX_OFFLINE_DIR; touching the file makes the compiler run them all.
touch src/lib.rs
SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$fresh cargo check --quiet --locked --lib
# The next build is offline again and must not reuse this one's answer.
touch src/lib.rs

case ${1:?check or renew} in
  check)
    if ! diff -r -q .sqlx "$fresh" >&2; then
      echo ".sqlx/ is stale: run make sqlx and commit it" >&2
      exit 1
    fi
    echo "$(find "$fresh" -name '*.json' | wc -l) queries fit the schema; .sqlx/ is fresh"
    ;;
  renew)
    rm -rf .sqlx
    mkdir .sqlx
    cp "$fresh"/*.json .sqlx/
    echo ".sqlx/ holds $(find .sqlx -name '*.json' | wc -l) queries"
    ;;
esac
