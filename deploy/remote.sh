#!/bin/sh
# A git remote without access control: any client can push. Use it only for trials on one computer.
set -e
cd /site
if [ ! -d site.git ]; then
    rm -rf site.new /tmp/site
    bifolio init /tmp/site >/dev/null
    cp /site.yaml /tmp/site/site.yaml
    git -C /tmp/site init --quiet --initial-branch main
    git -C /tmp/site add --all
    git -C /tmp/site -c user.name=Bifolio -c user.email=bifolio@localhost commit --quiet --message Begin
    git clone --quiet --bare /tmp/site site.new
    git -C site.new config receive.denyNonFastForwards true
    mv site.new site.git
fi
exec git daemon --base-path=/site --export-all --enable=receive-pack --reuseaddr
