// Better Auth makes and checks the codes; mailgate sends them and says how long to wait.
import { betterAuth } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { emailOTP } from "better-auth/plugins";
import { forCountdown, Mailgate } from "mailgate";

const gate = new Mailgate(process.env.MAILGATE_URL ?? "http://127.0.0.1:8080", { key: process.env.MAILGATE_KEY });

export const auth = betterAuth({
  baseURL: "http://127.0.0.1:3000",
  secret: process.env.BETTER_AUTH_SECRET,
  plugins: [
    emailOTP({
      async sendVerificationOTP({ email, otp }) {
        const { error } = await gate.send({ email, code: otp });
        if (error) throw new Error(error.type); // is logged: Better Auth has answered by now
      },
    }),
  ],
  hooks: {
    before: createAuthMiddleware(async ({ path, body }) => {
      if (path !== "/email-otp/send-verification-otp") return;
      const result = await gate.mailbox(body.email); // so the visitor is told before
      if (result.data?.wait_ms > 0) throw new APIError("TOO_MANY_REQUESTS", { message: "Wait a moment.", countdown: forCountdown(result) });
    }),
  },
});
