# Python's smtplib, which says of several recipients which were refused.
import os, smtplib, sys

text = "From: no-reply@acme.example\r\nSubject: code\r\n\r\n123456\r\n"
with smtplib.SMTP(os.environ["SMTP_HOST"], int(os.environ["SMTP_PORT"])) as server:
    server.login(os.environ["SMTP_USER"], os.environ["SMTP_PASSWORD"])
    try:
        refused = server.sendmail("no-reply@acme.example", sys.argv[1:], text)
    except smtplib.SMTPException as error:
        sys.exit(f"{type(error).__name__} {error}")
print(refused or "")
