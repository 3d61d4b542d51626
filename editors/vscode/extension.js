// Client of the language server `bifolio lsp`.

const path = require("node:path");
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const FILES = "**/*.{md,markdown,mdx,json,yaml,yml,toml}";
let client;

function serverOptions() {
  const settings = workspace.getConfiguration("bifolio");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const expand = (text) => text.replaceAll("${workspaceFolder}", folder);
  return {
    command: expand(settings.get("command", "bifolio")),
    args: settings.get("arguments", ["lsp"]).map(expand),
    options: folder ? { cwd: folder } : {},
  };
}

async function start() {
  // The server ignores files that belong to no site.
  const documentSelector = [{ scheme: "file", pattern: FILES }];
  client = new LanguageClient("bifolio", "Bifolio", serverOptions(), { documentSelector });
  try {
    await client.start();
  } catch {
    // vscode-languageclient has shown and logged the reason.
    const { command } = serverOptions();
    window.showErrorMessage(`The command ${command} does not start. Set bifolio.command to its full path.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) await running.dispose();
}

async function create() {
  const schemas = await workspace.findFiles("**/content-types/*.{json,yaml,yml}", "**/node_modules/**");
  const types = schemas.map((uri) => ({ label: path.parse(uri.fsPath).name, description: uri.fsPath, uri }));
  const type = await window.showQuickPick(types, { placeHolder: "Content type" });
  const name = type && (await window.showInputBox({ prompt: "Name of the file, such as 2026/night-ferry" }));
  if (name === undefined) return;
  const argument = { type: type.label, name, uri: type.uri.toString() };
  await commands.executeCommand("bifolio.newDocument", argument);
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("bifolio.create", create),
    commands.registerCommand("bifolio.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("bifolio.command") || event.affectsConfiguration("bifolio.arguments")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
