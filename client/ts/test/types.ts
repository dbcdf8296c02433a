// What a compiler must know of the results, and must refuse. Compiled, never run.
import { type ForCountdown, forCountdown, Mailgate, type SendResult, type VerifyResult } from "../dist/mailgate.js";

declare const gate: Mailgate;
declare const secret: string | undefined;

export function told(result: SendResult): string {
  switch (result.status) {
    case "sent": return result.id + result.waitMs + result.limits.length;
    case "wait": return result.rule.length + result.limit.toUpperCase() + result.waitMs;
    case "invalid": return result.fields.map((f) => f.field).join();
    case "rejected": return result.smtp.message;
    case "unknown": return result.id;
    case "unavailable": return result.kind + result.retryAfterMs;
    case "unanswered": return String(result.notAsked) + result.reason.toLowerCase();
    case "unsettled": return result.idempotencyKey + result.last.status;
    case "failed": return result.kind + result.httpStatus;
  }
} // a status that is not handled would make this an error

export function shown(result: SendResult): number {
  // @ts-expect-error not every result has a wait
  forCountdown(result);
  if (result.status === "sent" || result.status === "wait") return forCountdown(result).wait_ms;
  if (result.status !== "rejected" && result.status !== "unknown") return 0;
  // @ts-expect-error it may not be known how the mailbox stands
  forCountdown(result).wait_ms;
  return result.replayed ? 0 : forCountdown(result)?.wait_ms ?? 0;
}

export function passedOn(result: SendResult): ForCountdown | null {
  switch (result.status) {
    case "sent": case "wait": case "rejected": case "unknown": return forCountdown(result);
    default: return null;
  }
}

export function proved(result: VerifyResult): boolean {
  // @ts-expect-error not every result has guesses left
  result.attemptsLeft;
  // @ts-expect-error there is no such status
  return result.status === "verified" || result.status === "right";
}

export async function asks(): Promise<void> {
  new Mailgate("https://mailgate.internal", { key: secret, attempts: 2, fetch });
  const sent = await gate.sendCode({ email: "a@example.com", code: secret }, { signal: new AbortController().signal });
  // @ts-expect-error only a yes has an address
  sent.email;
  // @ts-expect-error a mail goes to somebody
  await gate.sendCode({ code: "1234" });
  // @ts-expect-error there is no such field
  await gate.sendCode({ email: "a@example.com", ip: "203.0.113.7" });
  await gate.verifyCode("a@example.com", "123456", { purpose: "sign-up", signal: new AbortController().signal });
  // @ts-expect-error a purpose is one of the options
  await gate.verifyCode("a@example.com", "123456", "sign-up");
  const taken = await gate.take("reply", "user 4711");
  if (taken.status === "taken") await gate.release("reply", "user 4711", taken.id);
  const looked = await gate.peek("reply", "user 4711");
  if (looked.status === "peeked" && looked.limit !== null) looked.limit.toUpperCase();
}
