/** The command palette (Ctrl-K), for finding documents, content types and commands with the keyboard. */

import { commandsFor, useMatches } from "./commands.js";
import { useStudio } from "./context.js";
import { Dialog } from "./dialog.js";
import { t } from "./language.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";

/**
 * Return whether the palette is open, and a function that opens or closes it. Ctrl-K or Command-K does so, too.
 * @returns {[boolean, (open: boolean) => void]}
 */
export function usePalette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const held = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!held || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setOpen((before) => before || !document.querySelector("dialog[open]"));
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return [open, setOpen];
}

/** @param {{close: () => void}} props */
export function Palette({ close }) {
  const studio = useStudio();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const wanted = text.trim();
  const commands = useMemo(() => commandsFor(studio), [studio]);
  const { matches, error, searching } = useMatches(studio.model, wanted);
  const named = commands.filter((command) => command.label.toLowerCase().includes(wanted.toLowerCase()));
  const offered = [...named, ...matches];
  const current = Math.min(at, offered.length - 1);
  const status = offered.length ? "" : searching ? t`Searching…` : t`No results`;

  useLayoutEffect(() => input.current?.focus(), []);
  useLayoutEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  /** @param {import("./commands.js").Command | undefined} command */
  const run = (command) => {
    if (!command) return;
    close();
    setTimeout(command.run); // when the focus is back where it was, from where a page may take it
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") run(offered[current]);
    else if (step) setAt((current + step + offered.length) % Math.max(offered.length, 1));
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} label=${t`Go to`} close=${close} class="palette">
    <input class="palette-input" type="text" role="combobox" aria-label=${t`Find documents and commands`}
      autocomplete="off"
      aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
      placeholder=${t`Find documents and commands`}
      aria-activedescendant=${offered[current] ? optionId(offered[current]) : undefined} value=${text} ref=${input}
      onInput=${(/** @type {any} */ event) => { setText(event.target.value); setAt(0); }} onKeyDown=${press} />
    <ul class="palette-list" id="palette-list" role="listbox" aria-label=${t`Results`} ref=${list}>
      ${offered.map((command, i) => html`<li class="palette-option" role="option" key=${command.id}
        id=${optionId(command)} aria-selected=${i === current} onClick=${() => run(command)}>
        <span class="palette-label">${command.label}</span>
        <span class="palette-note">${command.note}</span>
      </li>`)}
    </ul>
    <p class="palette-told" role="status">${error || status}</p>
  <//>`;
}

/** @param {import("./commands.js").Command} command */
const optionId = (command) => `palette-${command.id}`;
