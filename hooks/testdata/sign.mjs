// Signs the calls in this folder with the reference libraries: node sign.mjs > signatures.json
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const from = createRequire(process.cwd() + "/");
const secrets = ["aWxpa2VzdXBhYmFzZXZlcnltdWNoYW5kaWhvcGV5b3Vkb3Rvbw==", "bWFpbGdhdGUgdGVzdHMgcm90YXRlIHRoaXMgb25lIQ=="];
const at = new Date("2026-11-20T12:00:00Z");
const signed = [];
for (const library of ["standardwebhooks", "svix"]) {
  const { Webhook } = from(library);
  for (const file of ["signup.json", "email_change.json", "chinese.json"]) {
    const body = readFileSync(new URL(file, import.meta.url), "utf8");
    const id = "msg_" + library + "_" + file.split(".")[0];
    const signatures = secrets.map((secret) => new Webhook("whsec_" + secret).sign(id, at, body));
    signed.push({ library, file, id, timestamp: String(at / 1000), signatures });
  }
}
console.log(JSON.stringify({ secrets: secrets.map((secret) => "v1,whsec_" + secret), signed }, null, 2));
