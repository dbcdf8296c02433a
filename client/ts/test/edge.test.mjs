// The client in a world that has nothing of Node's, as an edge runtime is: a script whose
// only globals are those that every runtime with fetch has.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { email, key, play, problem, sent } from "./script.mjs";

test("no global of Node's is needed", async () => {
  const source = await readFile(fileURLToPath(process.env.MAILGATE_JS), "utf8");
  assert.doesNotMatch(source, /^\s*import\b|\bimport\(|\brequire\(/m);
  const script = source.replace(/^export /gm, "") + "\n;({ Mailgate, newKey })";
  const world = vm.createContext({ fetch, URL, TextDecoder, AbortController, setTimeout, clearTimeout });
  const { Mailgate, newKey } = vm.runInContext(script, world);
  const server = await play(null, problem(503, "busy"), sent);
  const result = await new Mailgate(server.url, { key }).sendCode({ email, idempotencyKey: newKey() });
  assert.equal(result.status, "sent");
  assert.equal(server.asked.length, 3);
});
