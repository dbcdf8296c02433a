import { forCountdown, limitReached, Mailgate } from "mailgate";

const gate = new Mailgate(process.env.MAILGATE_URL ?? "http://127.0.0.1:8080", { key: process.env.MAILGATE_KEY });

const statuses: Record<string, number> = {
  [limitReached]: 429, "/docs#invalid": 422, "/docs#recipient-rejected": 422,
};

export async function POST(request: Request): Promise<Response> {
  const email = String((await request.formData()).get("email") ?? "");
  const result = await gate.send({ email, purpose: "sign-up" });
  return Response.json(forCountdown(result), { status: result.data ? 200 : statuses[result.error.type] ?? 502 });
}
