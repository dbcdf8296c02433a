// Has Logto's connector send an email as Logto does at a sign-in.
import createConnector from "@logto/connector-http-email";

const config = { endpoint: (process.env.MAILGATE_URL ?? "http://127.0.0.1:8080") + "/hooks/logto", authorization: process.env.HOOK_SECRET };
const connector = await createConnector({ getConfig: async () => config });
try {
  await connector.sendMessage({ to: process.argv[2], type: process.argv[3] ?? "SignIn", payload: { code: "123456", locale: "en" }, ip: "203.0.113.7" });
  console.log("sent");
} catch (error) {
  console.log(error.data?.message ?? error);
}
