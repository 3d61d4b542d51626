# Bifolio in a container, as an unprivileged user: docker build -t bifolio . && docker run -p 127.0.0.1:1337:1337 -v "$PWD":/site bifolio
FROM node:22-slim AS studio
WORKDIR /bifolio
COPY vendor vendor
COPY server/api/studio/page server/api/studio/page
RUN cd vendor && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error && node studio.mjs /page

FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends binutils git openssh-client python3-pip python3-venv
WORKDIR /bifolio
COPY . .
COPY --from=studio /page server/api/studio/page
RUN git rev-parse --short HEAD > server/commit.txt || rm -f server/commit.txt
# psycopg uses Debian's libpq, because psycopg[binary] contains its own libpq with another OpenSSL.
# Extension modules are stripped of symbols that only debuggers use. Stripping the libraries in wheels (lib*.so.1) would break them.
RUN python3 -m venv --without-pip /opt/bifolio \
    && pip --python /opt/bifolio/bin/python install --no-cache-dir --no-compile '.[redis,s3]' 'psycopg>=3.2' \
    && find /opt/bifolio -name '*.so' -exec strip --strip-unneeded {} +

FROM debian:trixie-slim AS system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libcurl3t64-gnutls libpq5 python3 \
    && useradd --uid 1000 bifolio
# The final image contains neither apt nor Perl. To add Debian packages, list them in the command above. Tools that manage users
# and disks are removed too. Of the gconv character sets (for old commits), only ISO 8859 and Windows-125x are kept:
# the others, mainly Asian, take 7 MB.
RUN dpkg --purge --force-all \
        adduser apt debconf libapt-pkg7.0 libdebconfclient0 openssl perl-base sqv \
        bsdutils libblkid1 libdb5.3t64 libmount1 libsemanage2 libsepol2 libsmartcols1 libsystemd0 libudev1 \
        login login.defs mount passwd util-linux \
    && find /usr/lib/*/gconv -name '*.so' ! -name 'ISO8859-*' ! -name 'CP125*' -delete \
    && rm -rf /var/lib/apt /var/cache/* /var/log/*
# Copy only the parts of git and ssh that Bifolio and git remotes need. Perl, which is larger than Python, is left out.
COPY --from=build /usr/bin/git /usr/bin/ssh /usr/bin/
COPY --from=build /usr/lib/git-core/git-daemon /usr/lib/git-core/git-remote-http /usr/lib/git-core/
COPY --from=build /usr/share/git-core/templates/description /usr/share/git-core/templates/
RUN ln -s git /usr/bin/git-receive-pack && ln -s git /usr/bin/git-upload-pack \
    && ln -s git-remote-http /usr/lib/git-core/git-remote-https \
    && git config --system --add safe.directory /site
COPY --from=build /opt/bifolio /opt/bifolio
# Precompile only the modules that Bifolio imports.
RUN find / -xdev -name __pycache__ -prune -exec rm -r {} + \
    && /opt/bifolio/bin/python -c "import pkgutil, server; \
        [__import__(found.name) for found in pkgutil.walk_packages(server.__path__, 'server.') if '__main__' not in found.name]"

# Copy everything into a single layer. Otherwise, the deleted files would still take up space in earlier layers.
FROM scratch
COPY --from=system / /
RUN install --directory --owner bifolio --group bifolio /home/bifolio /site
ENV PATH=/opt/bifolio/bin:/usr/local/bin:/usr/bin:/bin PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 BIFOLIO_SITE=/site
USER bifolio
WORKDIR /site
VOLUME /site
EXPOSE 1337
# Check /_health/live, not /_health/ready: a restart does not fix a problem such as an unavailable database.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1337/_health/live', timeout=4)"]
ENTRYPOINT ["bifolio"]
CMD ["serve", "--host", "0.0.0.0"]
