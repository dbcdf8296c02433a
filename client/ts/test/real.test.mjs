// Against a running mailgate, and a proxy that loses replies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Mailgate, newKey } from "./script.mjs";

const { MAILGATE_URL: url, MAILGATE_KEY: key, MAILGATE_ADMIN_KEY: adminKey, TEST_URL: tools } = process.env;
const gate = new Mailgate(url, { key });
const operator = new Mailgate(url, { key: adminKey });

/** The texts of the mails that the relay has for somebody. */
const mailsTo = async (email) => (await fetch(`${tools}/mails?to=${encodeURIComponent(email)}`)).json();

/** A proxy to mailgate that loses this many replies. */
const losing = async (replies) => (await fetch(`${tools}/losing?replies=${replies}`)).text();

test("send, wait, look", async () => {
  const sent = await gate.sendCode({ email: "Alice@example.com", code: "482913", clientIp: "203.0.113.7", locale: "en" });
  assert.equal(sent.status, "sent", JSON.stringify(sent));
  assert.equal(sent.email, "Alice@example.com");
  assert.equal(sent.limit, "minute");
  assert.equal(sent.waitMs, 60000);
  assert.equal(sent.replayed, false);
  assert.deepEqual(sent.limits.map((l) => [l.name, l.limit, l.windowMs, l.remaining]), [["minute", 1, 60000, 0], ["hour", 5, 3600000, 4], ["day", 10, 86400000, 9]]);
  assert.equal(Date.parse(sent.retryAt) - Date.parse(sent.serverTime), 60000);
  assert.ok(sent.countdown);
  assert.match((await mailsTo("Alice@example.com"))[0], /482913/);

  const wait = await gate.sendCode({ email: "alice+again@example.com" });
  assert.equal(wait.status, "wait", JSON.stringify(wait));
  assert.equal(wait.rule, "mailbox");
  assert.equal(wait.limit, "minute");
  assert.ok(wait.waitMs > 0 && wait.waitMs <= 60000);
  assert.equal(wait.retryAt, sent.retryAt);
  assert.deepEqual(wait.violated, ["minute"]);
  assert.ok(wait.requestId && wait.detail && wait.countdown);

  const seen = await gate.mailbox("alice@example.com");
  assert.equal(seen.status, "seen");
  assert.equal(seen.retryAt, sent.retryAt);
});

test("what will not do", async () => {
  const invalid = await gate.sendCode({ email: "alice", code: "?" });
  assert.equal(invalid.status, "invalid");
  assert.deepEqual(invalid.fields.map((f) => f.field), ["email", "code"]);
  const stranger = await new Mailgate(url, { key: "another" }).sendCode({ email: "stranger@example.com" });
  assert.equal(stranger.status, "failed");
  assert.equal(stranger.kind, "unauthorized");
  assert.equal((await gate.take("nothing", "user 4711")).kind, "unknown-action");
});

test("lost replies: one mail", async () => {
  const email = "bob@example.com";
  const sent = await new Mailgate(await losing(3), { key }).sendCode({ email });
  assert.equal(sent.status, "sent", JSON.stringify(sent));
  assert.equal(sent.replayed, true);
  assert.equal((await mailsTo(email)).length, 1);
  const seen = await operator.inspect(email);
  assert.deepEqual(seen.sends.map((s) => s.id), [sent.id]);
});

test("going on under a key", async () => {
  const email = "carol@example.com";
  const { idempotencyKey, status, last } = await new Mailgate(await losing(2), { key, attempts: 2 }).sendCode({ email });
  assert.deepEqual([status, last.status, last.notAsked], ["unsettled", "unanswered", false]);
  const sent = await gate.sendCode({ email, idempotencyKey });
  assert.equal(sent.status, "sent");
  assert.equal(sent.replayed, true);
  assert.equal((await mailsTo(email)).length, 1);
  assert.equal((await gate.sendCode({ email, idempotencyKey, locale: "zh" })).kind, "idempotency-mismatch");
});

test("two clicks at once: one mail", async () => {
  const send = { email: "dora@example.com", idempotencyKey: newKey() };
  const patient = new Mailgate(url, { key, attempts: 20 });
  const all = await Promise.all([1, 2, 3].map(() => patient.sendCode(send)));
  assert.deepEqual(new Set(all.map((r) => r.id)).size, 1, JSON.stringify(all));
  assert.equal((await mailsTo(send.email)).length, 1);
});

test("codes", async () => {
  const email = "emil@example.com";
  assert.equal((await gate.verifyCode(email, "123456")).status, "expired");
  assert.equal((await gate.sendCode({ email })).expiresInMs, 600000);
  const [code] = /\b\d{6}\b/.exec((await mailsTo(email))[0]);
  const wrong = code === "000000" ? "000001" : "000000";
  assert.deepEqual(await gate.verifyCode(email, wrong), { status: "incorrect", attemptsLeft: 4 });
  assert.deepEqual(await gate.verifyCode(email, code), { status: "verified" });
  assert.deepEqual(await gate.verifyCode(email, code), { status: "expired" });
});

test("codes for a purpose", async () => {
  const email = "greta@example.com", purpose = "sign-up";
  assert.equal((await gate.sendCode({ email, purpose })).status, "sent");
  const [code] = /\b\d{6}\b/.exec((await mailsTo(email))[0]);
  assert.deepEqual(await gate.verifyCode(email, code), { status: "incorrect", attemptsLeft: 4 });
  assert.deepEqual(await gate.verifyCode(email, code, { purpose: "reset-password" }), { status: "incorrect", attemptsLeft: 3 });
  assert.equal((await gate.verifyCode(email, code, { purpose: "" })).status, "invalid");
  assert.deepEqual(await gate.verifyCode(email, code, { purpose }), { status: "verified" });
  assert.equal((await gate.sendCode({ email, purpose, code })).status, "invalid");
});

test("actions", async () => {
  const subject = "user 4711";
  assert.equal((await gate.peek("reply", subject)).allowed, true);
  const taken = await gate.take("reply", subject);
  assert.equal(taken.status, "taken");
  const wait = await gate.take("reply", subject);
  assert.equal(wait.status, "wait");
  assert.equal(wait.rule, "reply");
  assert.deepEqual(await gate.release("reply", subject, taken.id), { status: "done", released: true });
  assert.deepEqual(await gate.release("reply", subject, taken.id), { status: "done", released: false });
  assert.equal((await gate.take("reply", subject)).status, "taken");
  assert.deepEqual(await operator.resetAction("reply", subject, "a ticket"), { status: "reset", cleared: 1 });
  assert.equal((await new Mailgate(await losing(1), { key }).take("reply", subject)).status, "taken");
  assert.equal((await gate.peek("reply", subject)).allowed, false);
});

test("operators", async () => {
  const email = "fritz@example.com";
  const sent = await gate.sendCode({ email });
  const seen = await operator.inspect(email);
  assert.equal(seen.status, "inspected");
  assert.deepEqual(seen.sends, [{ id: sent.id, at: sent.serverTime }]);
  assert.deepEqual(seen.guesses.map((l) => [l.name, l.remaining]), [["ten-minutes", 5], ["day", 20]]);
  assert.deepEqual(await operator.reset(email, "a ticket"), { status: "reset", cleared: 1 });
  assert.equal((await gate.mailbox(email)).waitMs, 0);
  assert.equal((await gate.inspect(email)).kind, "unauthorized");
});
