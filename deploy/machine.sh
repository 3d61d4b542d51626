#!/bin/sh
# A machine: a clone of the remote, made at the first start, and Quire that serves it.
set -e
if [ ! -d "$QUIRE_SITE" ]; then
    rm -rf "$QUIRE_SITE.new"  # of a start that was cut off
    git clone --quiet "$REMOTE" "$QUIRE_SITE.new"
    mv "$QUIRE_SITE.new" "$QUIRE_SITE"
fi
exec quire serve --host 0.0.0.0 --log json "$@"
