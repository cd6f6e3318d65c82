// Starts `fairlane lsp`, and gives it the settings `fairlane.*`.

const { commands, window, workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

function settings() {
  const given = workspace.getConfiguration("fairlane");
  return { include: given.get("include"), define: given.get("define") };
}

async function start() {
  const [command, ...args] = workspace.getConfiguration("fairlane").get("command");
  client = new LanguageClient(
    "fairlane",
    "P4 (Fairlane)",
    { command, args, transport: TransportKind.stdio },
    {
      documentSelector: [{ scheme: "file", language: "p4" }],
      initializationOptions: settings(),
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.p4") },
    },
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(`${command} did not start (${error.message}). Install Fairlane, or set "fairlane.command".`);
  }
}

async function stop() {
  if (client?.isRunning()) await client.stop();
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(commands.registerCommand("fairlane.restart", restart));
  context.subscriptions.push(
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("fairlane.command")) await restart();
      else if (event.affectsConfiguration("fairlane"))
        await client.sendNotification("workspace/didChangeConfiguration", { settings: { fairlane: settings() } });
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
