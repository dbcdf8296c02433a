# Django's send_mail, with its backend for SMTP.
import os, sys

import django
from django.conf import settings
from django.core.mail import send_mail

settings.configure(
    EMAIL_HOST=os.environ["SMTP_HOST"], EMAIL_PORT=int(os.environ["SMTP_PORT"]),
    EMAIL_HOST_USER=os.environ["SMTP_USER"], EMAIL_HOST_PASSWORD=os.environ["SMTP_PASSWORD"],
)
django.setup()
try:
    print(send_mail("code", "123456", "no-reply@acme.example", sys.argv[1:]))
except Exception as error:
    sys.exit(f"{type(error).__name__} {error}")
