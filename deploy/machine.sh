#!/bin/sh
# Start one machine: clone the git remote at the first start, then serve the clone.
set -e
if [ ! -d "$BIFOLIO_SITE" ]; then
    rm -rf "$BIFOLIO_SITE.new"  # left by an interrupted start
    git clone --quiet "$REMOTE" "$BIFOLIO_SITE.new"
    mv "$BIFOLIO_SITE.new" "$BIFOLIO_SITE"
fi
exec bifolio serve --host 0.0.0.0 --log json "$@"
