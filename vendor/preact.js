// What the studio's modules import of Preact and htm: elements, hooks, and `html` to write them with.
import { h } from "preact";
import htm from "htm";

export { Fragment, createContext, h, render } from "preact";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);
