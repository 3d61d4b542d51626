// The types of preact.js, for those who check the studio's modules: `make test-studio` does.
import { h } from "preact";

export { Fragment, createContext, h, render } from "preact";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
