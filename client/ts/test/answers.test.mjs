import assert from "node:assert/strict";
import { test } from "node:test";
import { asking, calls, email, forCountdown, json, key, Mailgate, newKey, play, problem, read, sent, stands, wait } from "./script.mjs";

const mailbox = { ...read, rule: "mailbox" };
const charged = (status, kind, more) => stands({ type: "urn:mailgate:problem:" + kind, id: "tWudQhxQ", rule: "mailbox", ...more }, status, { "x-request-id": "r1" });

// Every field of an answer is where a caller looks for it.
for (const [name, line, want] of [
  ["sendCode", { ...sent, headers: { "idempotent-replayed": "true" } },
    { ...mailbox, status: "sent", id: "tWudQhxQ", messageId: "<tWudQhxQ@acme.example>", email, expiresInMs: 600000, replayed: true, countdown: "t0k3n" }],
  ["sendCode", wait,
    { ...mailbox, status: "wait", violated: ["minute", "visitor.hour"], detail: "The limit minute is reached.", requestId: "r1", countdown: "t0k3n" }],
  ["sendCode", problem(422, "invalid", { "x-request-id": "r1" }, { errors: [{ field: "email", reason: "no-at", detail: "No @." }] }),
    { status: "invalid", fields: [{ field: "email", reason: "no-at", detail: "No @." }], requestId: "r1" }],
  ["sendCode", charged(422, "recipient-rejected", { smtp: { code: 550, enhanced: "5.1.1", message: "No such mailbox" } }),
    { status: "rejected", smtp: { code: 550, enhanced: "5.1.1", message: "No such mailbox" }, standing: mailbox, id: "tWudQhxQ", requestId: "r1", replayed: false }],
  ["sendCode", charged(504, "delivery-unknown"), { status: "unknown", standing: mailbox, id: "tWudQhxQ", requestId: "r1", replayed: false }],
  ["sendCode", problem(503, "relay-unavailable", { "retry-after": "10" }),
    { status: "unavailable", kind: "relay-unavailable", retryAfterMs: 10000, detail: "A sentence.", requestId: "" }],
  ["sendCode", problem(401, "unauthorized"), { status: "failed", kind: "unauthorized", httpStatus: 401, detail: "A sentence.", requestId: "" }],
  ["sendCode", { status: 400 }, { status: "failed", kind: "", httpStatus: 400, detail: "", requestId: "" }],
  ["sendCode", json(429, { ...JSON.parse(wait.body), wait_ms: -1 }), { status: "failed", kind: "", httpStatus: 429, detail: "The limit minute is reached.", requestId: "" }],
  ["sendCode", { ...wait, status: 400 }, { status: "failed", kind: "", httpStatus: 400, detail: "The limit minute is reached.", requestId: "r1" }],
  ["verifyCode", json(200, { verified: true }), { status: "verified" }],
  ["verifyCode", problem(422, "code-incorrect", {}, { attempts_left: 0 }), { status: "incorrect", attemptsLeft: 0 }],
  ["verifyCode", problem(410, "code-expired"), { status: "expired" }],
  ["mailbox", stands({ email, rule: null, limit: null }), { ...read, status: "seen", email, rule: null, limit: null }],
  ["take", stands({ allowed: true, id: "tWudQhxQ", delay_ms: 1500 }), { ...read, status: "taken", rule: null, id: "tWudQhxQ", delayMs: 1500 }],
  ["take", stands({ allowed: true, id: "tWudQhxQ" }), { ...read, status: "taken", rule: null, id: "tWudQhxQ", delayMs: 0 }],
  ["peek", stands({ allowed: false }), { ...read, status: "peeked", rule: null, allowed: false }],
  ["release", json(200, { released: false }), { status: "done", released: false }],
  ["inspect", stands({ email, sends: [{ id: "tWudQhxQ", at: "2026-11-20T12:00:05.679Z" }], guesses: [{ name: "day", limit: 20, window_ms: 86400000, remaining: 15, wait_ms: 0 }] }),
    { ...read, status: "inspected", rule: null, email, sends: [{ id: "tWudQhxQ", at: "2026-11-20T12:00:05.679Z" }],
      guesses: [{ name: "day", limit: 20, windowMs: 86400000, remaining: 15, waitMs: 0 }] }],
  ["inspect", stands({ email, sends: [] }), { ...read, status: "inspected", rule: null, email, sends: [], guesses: [] }],
  ["reset", json(200, { email, cleared: 2 }), { status: "reset", cleared: 2 }],
  ["resetAction", json(200, { action: "reply", cleared: 0 }), { status: "reset", cleared: 0 }],
]) {
  test(`${name} reads ${want.status}`, async () => {
    const server = await play(line);
    assert.deepEqual(await calls[name](asking(server.url).gate), want);
  });
}

// What a page is given says the same as mailgate's answer did, in all that the countdown reads.
test("what a back end passes on to its page", async () => {
  for (const line of [sent, wait]) {
    const server = await play(line);
    const { limit, wait_ms, retry_at, limits: [{ remaining, ...tier }], countdown } = JSON.parse(line.body);
    assert.deepEqual(forCountdown(await asking(server.url).gate.sendCode({ email })), { limit, wait_ms, retry_at, limits: [tier], countdown });
    assert.equal(forCountdown({ ...await asking(server.url).gate.sendCode({ email }), replayed: true }).replayed, true);
  }
  assert.equal("countdown" in forCountdown(read), false);
});

// So do the refusals that are charged. They are given again as well, and tell of an earlier moment then.
test("what a back end passes on of a refusal", async () => {
  for (const [status, kind] of [[422, "recipient-rejected"], [504, "delivery-unknown"]]) {
    for (const [headers, again] of [[{}, {}], [{ "idempotent-replayed": "true" }, { replayed: true }]]) {
      const line = charged(status, kind, { countdown: "t0k3n" });
      const server = await play({ ...line, headers: { ...line.headers, ...headers } });
      const { limit, wait_ms, retry_at, limits: [{ remaining, ...tier }], countdown } = JSON.parse(line.body);
      const refused = await asking(server.url).gate.sendCode({ email });
      assert.equal(refused.replayed, again.replayed === true);
      assert.deepEqual(forCountdown(refused), { limit, wait_ms, retry_at, limits: [tier], countdown, ...again });
    }
  }
  const bare = await play(problem(504, "delivery-unknown"));
  assert.equal(forCountdown(await asking(bare.url).gate.sendCode({ email })), null);
});

// What is not the yes of a call is never taken for it.
test("no yes from something else", async () => {
  const all = { ...JSON.parse(sent.body), allowed: true, verified: true, released: true, cleared: 1, sends: [] };
  const parts = { sendCode: ["status", "id", "wait_ms"], verifyCode: ["verified"], mailbox: ["email", "server_time"], take: ["allowed", "id", "retry_at"],
    peek: ["allowed"], release: ["released"], inspect: ["sends", "email"], reset: ["cleared"], resetAction: ["cleared"], resetRule: ["cleared"] };
  for (const [name, fields] of Object.entries(parts)) {
    for (const field of [undefined, ...fields]) {
      for (const instead of [undefined, null, "x", -1, 1.5, {}, []]) {
        const whole = field === undefined || (["id", "email", "server_time", "retry_at"].includes(field) && instead === "x") || (field === "sends" && Array.isArray(instead));
        const server = await play(json(200, field ? { ...all, [field]: instead } : all));
        const result = await calls[name](asking(server.url).gate), { status, kind } = result.last ?? result;
        assert.equal(kind === "unreadable", !whole, `${name} with ${field} ${JSON.stringify(instead)}: ${status}`);
      }
    }
    for (const body of ["", "null", "[]", "3", "<html>"]) {
      const server = await play({ status: 200, body });
      const result = await calls[name](asking(server.url).gate);
      assert.equal((result.last ?? result).kind, "unreadable");
    }
  }
});

test("what is written is what mailgate asks for", async () => {
  const server = await play(problem(401, "unauthorized"));
  const { gate } = asking(server.url + "/");
  await gate.sendCode({ email: "a@example.com" });
  await gate.sendCode({ email: "a@example.com", code: "4711", template: "login", locale: "zh", clientIp: "2001:db8::1", data: { product: "Acme" } });
  await gate.sendCode({ email: "a@example.com", purpose: "sign-up" });
  await gate.verifyCode("a@example.com", "123456");
  await gate.verifyCode("a@example.com", "123456", { purpose: "sign-up" });
  await gate.mailbox("a/b+c?%@example.com");
  await gate.inspect("\ud800@example.com");
  await gate.take("a/b", "user 4711");
  await gate.release("reply", "user 4711", "tWudQhxQ");
  await gate.reset("a@example.com");
  await gate.resetAction("reply", "user 4711", "why");
  await gate.resetRule("client-ip", "198.51.100.7", "why");
  await gate.resetRule("provider");
  assert.deepEqual(server.asked.map((q) => `${q.method} ${q.path} ${q.body}`), [
    'POST /send-code {"email":"a@example.com"}',
    'POST /send-code {"email":"a@example.com","code":"4711","template":"login","locale":"zh","client_ip":"2001:db8::1","data":{"product":"Acme"}}',
    'POST /send-code {"email":"a@example.com","purpose":"sign-up"}',
    'POST /verify-code {"email":"a@example.com","code":"123456"}',
    'POST /verify-code {"email":"a@example.com","code":"123456","purpose":"sign-up"}',
    "GET /mailboxes/a%2Fb%2Bc%3F%25%40example.com ",
    "GET /admin/mailboxes/%EF%BF%BD%40example.com ",
    'POST /actions/a%2Fb/take {"subject":"user 4711"}',
    'POST /actions/reply/release {"subject":"user 4711","id":"tWudQhxQ"}',
    "POST /admin/mailboxes/a%40example.com/reset {}",
    'POST /admin/actions/reply/reset {"subject":"user 4711","reason":"why"}',
    'POST /admin/rules/client-ip/reset {"subject":"198.51.100.7","reason":"why"}',
    "POST /admin/rules/provider/reset {}",
  ]);
  for (const q of server.asked) assert.equal(q.headers["content-type"], q.body ? "application/json" : undefined);
});

test("a mailgate may be below a path, and have no keys", async () => {
  const server = await play(sent);
  assert.equal((await new Mailgate(server.url + "/gate/").sendCode({ email })).status, "sent");
  assert.equal(server.asked[0].path, "/gate/send-code");
  assert.equal(server.asked[0].headers.authorization, undefined);
});

// Under one key mailgate takes the same bytes only, and who goes on later may have put the
// data together in another order.
test("the same data are the same bytes", async () => {
  const server = await play(sent);
  for (const data of [{ device: "Firefox", place: "Bern", 10: "x", 9: "y" }, { 9: "y", place: "Bern", device: "Firefox", 10: "x" }]) {
    await asking(server.url).gate.sendCode({ email, data, idempotencyKey: "order-4711" });
  }
  assert.equal(server.asked[0].body, server.asked[1].body);
  assert.deepEqual(JSON.parse(server.asked[0].body).data, { device: "Firefox", place: "Bern", 10: "x", 9: "y" });
});

test("a key that is given is quoted", async () => {
  const server = await play(sent);
  await asking(server.url).gate.sendCode({ email, idempotencyKey: 'a"b\\c' });
  assert.equal(server.asked[0].headers["idempotency-key"], '"a\\"b\\\\c"');
  for (const idempotencyKey of ["", "a b", "käse", "a\n", "k".repeat(256)]) {
    await assert.rejects(asking(server.url).gate.sendCode({ email, idempotencyKey }), TypeError);
  }
  assert.equal(server.asked.length, 1);
});

test("what names nothing is not asked about", async () => {
  const server = await play(sent);
  const { gate } = asking(server.url);
  for (const none of ["", ".", ".."]) {
    for (const [name, call] of Object.entries({
      email: [() => gate.mailbox(none), () => gate.inspect(none), () => gate.reset(none)],
      action: [() => gate.take(none, "u"), () => gate.peek(none, "u"), () => gate.release(none, "u", "id"), () => gate.resetAction(none, "u")],
      rule: [() => gate.resetRule(none, "u")],
    })) {
      for (const one of call) await assert.rejects(one(), (e) => e instanceof TypeError && e.message.includes(name));
    }
  }
  assert.equal(server.asked.length, 0);
});

test("keys are made alike by nobody, with crypto and without", () => {
  const seen = new Set();
  const crypto = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  for (let i = 0; i < 200; i++) {
    if (i === 100) Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
    const made = newKey();
    assert.match(made, /^[!-~]{20,255}$/);
    seen.add(made);
  }
  if (crypto) Object.defineProperty(globalThis, "crypto", crypto);
  else delete globalThis.crypto;
  assert.equal(seen.size, 200);
});

test("what a program has wrong is a TypeError that shows no secret", () => {
  for (const url of ["", "mailgate.internal", "ftp://mailgate.internal", "https://", `https://user:${key}@mailgate.internal`, `https://h/?key=${key}`, "https://h/#a", "/send"]) {
    assert.throws(() => new Mailgate(url, { key }), (e) => e instanceof TypeError && !(e.stack + JSON.stringify(e)).includes(key), url);
  }
  for (const wrong of [{ key: key + "\r\nX: y" }, { key: "käse" }, { attempts: 0 }, { timeoutMs: -1 }, { maxPauseMs: NaN },
    { timeoutMs: Infinity }, { timeoutMs: 2 ** 31 }, { maxPauseMs: Infinity }, { maxPauseMs: 2 ** 30 }]) {
    assert.throws(() => new Mailgate("https://mailgate.internal", wrong), (e) => e instanceof TypeError && !e.stack.includes(key));
  }
});
