#!/bin/sh
# A machine: a clone of the remote, made at the first start, and Bifolio that serves it.
set -e
if [ ! -d "$BIFOLIO_SITE" ]; then
    rm -rf "$BIFOLIO_SITE.new"  # of a start that was cut off
    git clone --quiet "$REMOTE" "$BIFOLIO_SITE.new"
    mv "$BIFOLIO_SITE.new" "$BIFOLIO_SITE"
fi
exec bifolio serve --host 0.0.0.0 --log json "$@"
