// Runs the extension in EXTENSION against the site in SITE, with a stub of VS Code: node walk.cjs EXTENSION SITE BIFOLIO

const assert = require("node:assert/strict");
const { writeFileSync } = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

const [extension, site, command] = process.argv.slice(2);
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...others) =>
  name === "vscode" ? path.join(__dirname, "stub.cjs") : resolve(name, ...others);
const vscode = require("vscode");
const { state, emitters, event, documentOf } = vscode.stub;

const LIMIT_MS = 30_000;
const none = new vscode.CancellationTokenSource().token;

/** Wait until a condition holds after one of the events. */
function until(name, condition) {
  return new Promise((found, failed) => {
    const limit = setTimeout(() => failed(new Error(`no ${name}: ${JSON.stringify(state.output)}`)), LIMIT_MS);
    const look = () => {
      if (!condition()) return;
      clearTimeout(limit);
      subscription.dispose();
      found();
    };
    const subscription = event(name)(look);
    look();
  });
}

async function main() {
  const folder = { uri: vscode.Uri.file(site), name: "site", index: 0 };
  vscode.workspace.workspaceFolders.push(folder);
  const context = { subscriptions: [] };
  const { activate, deactivate } = require(path.join(extension, require(path.join(extension, "package.json")).main));

  state.settings = { "bifolio.command": "${workspaceFolder}/no-such-command" };
  await activate(context);
  assert.match(state.errors.join(), /no-such-command does not start\. Set bifolio\.command/);
  state.errors.length = 0;

  state.settings = { "bifolio.command": command, "bifolio.arguments": ["-m", "server", "lsp"] };
  await vscode.commands.executeCommand("bifolio.restart");
  const file = path.join(site, "content/posts/new.md");
  const text = "---\ntitle: New\nmood: rouhg\ntags: [s]\n---\n\n[all](one.md)\n";
  writeFileSync(file, text);
  const document = documentOf(file, "markdown");
  vscode.workspace.textDocuments.push(document);
  await emitters.onDidOpenTextDocument.fire(document);
  const uri = document.uri.toString();
  await until("diagnosed", () => state.diagnostics.get(uri)?.length);
  const messages = state.diagnostics.get(uri).map((one) => one.given[1]);
  assert.match(messages.join(), /mood must be one of calm, rough/);

  const at = (word, offset) => {
    const lines = text.slice(0, text.indexOf(word) + offset).split("\n");
    return new vscode.Position(lines.length - 1, lines.at(-1).length);
  };
  const { providers } = state;
  const { provideCompletionItems } = providers.registerCompletionItemProvider;
  const [items] = (await provideCompletionItems(document, at("[s]", 2), none, {})).given;
  assert.deepEqual(items.map((one) => one.label.label ?? one.label), ["sea"]);
  const [definition] = await providers.registerDefinitionProvider.provideDefinition(document, at("one.md", 2), none);
  assert.match(String(definition.given[0]), /content\/posts\/one\.md$/);
  const edit = await providers.registerRenameProvider.provideRenameEdits(document, at("one.md", 2), "first", none);
  assert.match(JSON.stringify(edit.changes), /"to":"[^"]*content\/posts\/first\.md"/);

  Object.assign(state, { files: [vscode.Uri.file(path.join(site, "content-types/tag.json"))], picks: ["tag", "fog"] });
  await vscode.commands.executeCommand("bifolio.create");
  await until("edited", () => JSON.stringify(state.edits).includes("content/tags/fog."));

  await deactivate();
  assert.deepEqual(state.errors, []);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error, state.output.join(""));
    process.exit(1);
  },
);
