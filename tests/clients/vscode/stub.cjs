// The parts of the module `vscode` that the extension and vscode-languageclient use. VS Code itself is not on npm.

const { pathToFileURL, fileURLToPath } = require("node:url");
const { readFileSync } = require("node:fs");

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}
class Range {
  constructor(...ends) {
    if (ends.length === 4) ends = [new Position(ends[0], ends[1]), new Position(ends[2], ends[3])];
    [this.start, this.end] = ends;
  }
}
class Uri {
  constructor(text) {
    this.text = text;
    this.scheme = text.split(":")[0];
    this.fsPath = this.scheme === "file" ? fileURLToPath(text) : "";
  }
  static parse = (text) => new Uri(text);
  static file = (file) => new Uri(pathToFileURL(file).href);
  toString = () => this.text;
}
class Disposable {
  constructor(dispose = () => {}) {
    this.dispose = dispose;
  }
  static from = (...all) => new Disposable(() => all.forEach((one) => one.dispose()));
}
class EventEmitter {
  handlers = new Set();
  event = (handler, self) => {
    const bound = handler.bind(self);
    this.handlers.add(bound);
    return new Disposable(() => this.handlers.delete(bound));
  };
  fire = (value) => Promise.all([...this.handlers].map((handler) => handler(value)));
  dispose = () => this.handlers.clear();
}
class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: new EventEmitter().event };
  cancel() {}
  dispose() {}
}
class Edit {
  changes = [];
  replace(uri, range, text) {
    this.changes.push({ changed: uri.toString(), range, text });
  }
  createFile(uri) {
    this.changes.push({ created: uri.toString() });
  }
  renameFile(before, after) {
    this.changes.push({ renamed: before.toString(), to: after.toString() });
  }
}
class CancellationError extends Error {}
class CodeActionKind {
  append = () => this;
  static Empty = new CodeActionKind();
}

// What a test needs to see and to change.
const state = { settings: {}, errors: [], output: [], providers: {}, diagnostics: new Map(), edits: [], picks: [] };
const emitters = {};
const event = (name) => (emitters[name] ??= new EventEmitter()).event;
const registered = new Map();
const ignored = () => new Disposable();

function documentOf(file, languageId, text = readFileSync(file, "utf-8")) {
  const uri = Uri.file(file);
  return { uri, fileName: file, languageId, version: 1, isUntitled: false, isClosed: false, getText: () => text };
}

const endings = (pattern) => /^\*\*\/\*\.\{(.*)\}$/.exec(pattern)[1].split(",").map((one) => `.${one}`);
const languages = {
  // vscode-languageclient checks which documents belong to a selector.
  match: (selector, document) =>
    selector.some((one) => one.scheme === document.uri.scheme && endings(one.pattern).some((end) => document.fileName.endsWith(end)))
      ? 10
      : 0,
  createDiagnosticCollection: () => ({
    set: (uri, found) => {
      state.diagnostics.set(uri.toString(), found ?? []);
      emitters.diagnosed?.fire();
    },
    get: () => undefined,
    has: () => false,
    clear: () => state.diagnostics.clear(),
    delete: (uri) => state.diagnostics.delete(uri.toString()),
    dispose() {},
  }),
};
const workspace = {
  textDocuments: [],
  workspaceFolders: [],
  notebookDocuments: [],
  getConfiguration: (section) => ({ get: (key, otherwise) => state.settings[`${section}.${key}`] ?? otherwise }),
  createFileSystemWatcher: ignored,
  findFiles: async () => state.files ?? [],
  applyEdit: async (edit) => {
    state.edits.push(edit.changes);
    emitters.edited?.fire();
    return true;
  },
};
const window = {
  visibleTextEditors: [],
  tabGroups: { all: [], onDidChangeTabs: ignored },
  createOutputChannel: () => {
    const write = (text) => state.output.push(text);
    return { append: write, appendLine: write, clear() {}, show() {}, dispose() {} };
  },
  showErrorMessage: async (text) => void state.errors.push(text),
  showQuickPick: async (items) => items.find((one) => one.label === state.picks[0]),
  showInputBox: async () => state.picks[1],
  showTextDocument: async () => undefined,
  withProgress: async (_, task) => task({ report() {} }, new CancellationTokenSource().token),
};
const commands = {
  registerCommand: (name, handler) => {
    registered.set(name, handler);
    return new Disposable(() => registered.delete(name));
  },
  executeCommand: async (name, ...given) => registered.get(name)(...given),
};

const isEvent = (name) => /^on(Did|Will)[A-Z]/.test(name);
const register = (name) => (selector, ...others) => {
  const provider = others.find((one) => typeof one === "object") ?? selector;
  state.providers[name] = provider;
  return new Disposable(() => delete state.providers[name]);
};
// Other names are events, registrations of providers, and classes without behaviour.
const withEvents = (known) => new Proxy(known, { get: (all, name) => (name in all ? all[name] : isEvent(name) ? event(name) : undefined) });
const withProviders = (known) => new Proxy(known, { get: (all, name) => (name in all ? all[name] : register(name)) });
const plain = (name) =>
  ({
    [name]: class {
      constructor(...given) {
        if (given[0] instanceof Range) this.range = given[0];
        else if (name === "CompletionItem") this.label = given[0];
        this.given = given;
      }
    },
  })[name];
const others = {};

const api = {
  version: "1.82.0", Position, Range, Uri, Disposable, EventEmitter, CancellationTokenSource, CancellationError,
  CodeActionKind, WorkspaceEdit: Edit, commands, env: { language: "en", appName: "stub" },
  workspace: withEvents(workspace), window: withEvents(window), languages: withProviders(languages),
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  stub: { state, emitters, event, documentOf },
};
module.exports = new Proxy(api, { get: (all, name) => (name in all ? all[name] : (others[name] ??= plain(name))) });
