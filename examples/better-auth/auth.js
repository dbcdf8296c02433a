// Better Auth makes and checks the codes; mailgate sends them and says how long to wait.
import { betterAuth } from "better-auth";
import { APIError } from "better-auth/api";
import { emailOTP } from "better-auth/plugins";
import { forCountdown, limitReached, Mailgate } from "mailgate";

const gate = new Mailgate(process.env.MAILGATE_URL ?? "http://127.0.0.1:8080", { key: process.env.MAILGATE_KEY });

export const auth = betterAuth({
  baseURL: "http://127.0.0.1:3000",
  secret: process.env.BETTER_AUTH_SECRET,
  plugins: [
    emailOTP({
      async sendVerificationOTP({ email, otp }) {
        const result = await gate.send({ email, code: otp });
        if (result.data) return;
        const status = result.error.type === limitReached ? "TOO_MANY_REQUESTS" : "BAD_GATEWAY";
        throw new APIError(status, { message: "No code was sent.", countdown: forCountdown(result) });
      },
    }),
  ],
});
