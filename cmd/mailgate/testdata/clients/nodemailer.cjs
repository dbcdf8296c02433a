// nodemailer says of several recipients which were refused, and why.
const transport = require("nodemailer").createTransport({
  host: process.env.SMTP_HOST, port: Number(process.env.SMTP_PORT),
  auth: { user: process.env.SMTP_USER, pass: process.env.SMTP_PASSWORD },
});
transport.sendMail({ from: "no-reply@acme.example", to: process.argv.slice(2), subject: "code", text: "123456" }).then(
  (info) => console.log(info.rejected, info.rejectedErrors?.map((error) => error.response)),
  (error) => { console.error(error.code, error.responseCode, error.message); process.exitCode = 1; },
);
