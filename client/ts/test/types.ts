// What a compiler must know of the results, and must refuse. Compiled, never run.
import { forCountdown, limitReached, Mailgate, type SendResult, type VerifyResult } from "../dist/mailgate.js";
import type { components, paths } from "../dist/openapi.js";

declare const gate: Mailgate;

export function told({ data, error }: SendResult): string {
  if (data) return data.id + data.wait_ms.toFixed() + data.limits.length;
  switch (error.type) {
    case limitReached: return error.rule.toUpperCase() + error.limit.toUpperCase() + error.wait_ms + error["violated-policies"].join();
    case "/docs#invalid": return error.errors.map((e) => e.field).join();
    case "/docs#recipient-rejected": return error.smtp.message + error.limits.length;
    case "/docs#delivery-unknown": return error.id ?? "";
    case "urn:mailgate:client:no-answer": return error.reason.toLowerCase();
    case "urn:mailgate:client:other-answer": return error.status.toFixed();
    default: return error.detail + error.type satisfies string;
  }
}

// The contract's own union, with its default answer, narrows by type.
type Responses = paths["/send-code"]["post"]["responses"];
type Problem = Responses[422 | 429 | 504 | "default"]["content"]["application/problem+json"];
export function narrows(problem: Problem): number | undefined {
  if (problem.type === "/docs#invalid") return problem.errors.length;
  if (problem.type === limitReached) return problem.wait_ms;
  // @ts-expect-error what remains has no errors
  problem.errors;
  // @ts-expect-error there is no such type
  return problem.type === "/docs#nothing" ? 0 : undefined;
}
export const core: components["schemas"]["Problem"]["type"] = "/docs#busy";

export function guesses({ error }: VerifyResult): number {
  // @ts-expect-error only a wrong code has guesses left
  error?.guesses_left;
  return error?.type === "/docs#code-incorrect" ? error.guesses_left : 0;
}

export async function calls(): Promise<void> {
  const sent = await gate.send({ email: "a@example.com" }, { signal: new AbortController().signal, idempotencyKey: "k" });
  // @ts-expect-error only a sent one has data
  sent.data.email;
  if (sent.error?.type === "urn:mailgate:client:no-answer" && sent.uncertain) sent.idempotencyKey?.length;
  forCountdown(sent)?.limits.length;
  // @ts-expect-error an email has an address
  await gate.send({ code: "1234" });
  // @ts-expect-error there is no such field
  await gate.send({ email: "a@example.com", ip: "203.0.113.7" });
  const taken = await gate.take("reply", "user 4711");
  if (taken.data) await gate.release("reply", "user 4711", taken.data.id ?? "");
  (await gate.peek("reply", "user 4711")).data?.allowed;
}
