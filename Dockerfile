# Quire in a container that is not root: docker build -t quire . && docker run -p 1337:1337 -v "$PWD":/site quire
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /quire
COPY . .
RUN git rev-parse --short HEAD > server/commit.txt || rm -f server/commit.txt
RUN python -m venv /opt/quire && /opt/quire/bin/pip install --no-cache-dir '.[postgres]'

FROM python:3.13-slim
# Timestamps and authors of documents come from git.
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 quire \
    && git config --system --add safe.directory /site
COPY --from=build /opt/quire /opt/quire
ENV PATH=/opt/quire/bin:$PATH PYTHONUNBUFFERED=1 QUIRE_SITE=/site
USER quire
WORKDIR /site
VOLUME /site
EXPOSE 1337
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1337/_health', timeout=4)"]
ENTRYPOINT ["quire"]
CMD ["serve", "--host", "0.0.0.0"]
