// Reloads a page in development when something that it shows has changed: docs/events.md.
// The server fills in KINDS, the names of events, and leaves out comments and indentation.
{
  const base = new URL("..", document.currentScript.src).href, known = new Set(["_site"]), seen = {};
  let shown, timer, source, { bifolio: last } = sessionStorage;
  delete sessionStorage.bifolio;

  // Ask which tags something has that the page has loaded. Files alone do not tell what a page shows.
  const note = async ({ name }) => {
    const path = name.slice(base.length - 1);
    if (!name.startsWith(base) || seen[path] || !/^.(api|uploads|search)\b/.test(path)) return;
    seen[path] = 1;
    shown ||= path < "/u";
    const answer = await fetch(base + "events/tags?of=" + encodeURIComponent(path));
    if (answer.ok) (await answer.json()).data.map((tag) => known.add(tag));
  };
  new PerformanceObserver((list) => list.getEntries().map(note)).observe({ type: "resource", buffered: true });

  // A page of which nothing is known may show anything. An event without tags says that some are missing.
  const changed = ({ data }) => {
    const { seq, tags, last: end } = JSON.parse(data);
    const said = [...document.querySelectorAll("meta[name=cache-tag],script[data-tags]")];
    const own = said.map((one) => one.content || one.dataset.tags).join().split(/[\s,]+/);
    last = seq ?? end;
    if (tags && (shown || said[0]) && !tags.some((tag) => known.has(tag) || own.includes(tag))) return;
    clearTimeout(timer);
    timer = setTimeout(() => location.reload((sessionStorage.bifolio = last)), 100);
  };

  // A browser opens a stream again that breaks off, but not one that is refused; and it has six connections for
  // all its tabs, so that a hidden one leaves its own to others.
  const connect = () => {
    source?.close();
    if (document.hidden) return;
    source = new EventSource(base + "events?since=" + (last ?? ""));
    source.addEventListener("welcome", ({ data }) => (last ??= JSON.parse(data).last));
    KINDS.map((kind) => source.addEventListener(kind, changed));
    source.onerror = () => source.readyState > 1 && setTimeout(connect, 2000);
  };
  addEventListener("visibilitychange", connect);
  connect();
}
