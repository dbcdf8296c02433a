"""The back end of a sign-up page. Django makes the code and sends it by SMTP, through mailgate."""

import os
import re
import secrets
import sys
from smtplib import SMTPException, SMTPRecipientsRefused

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.management import execute_from_command_line
from django.core.validators import validate_email
from django.http import HttpResponse
from django.urls import path

host, port = os.environ.get("SMTP", "127.0.0.1:2525").split(":")
settings.configure(
    EMAIL_HOST=host, EMAIL_PORT=int(port), EMAIL_HOST_USER="signup", EMAIL_HOST_PASSWORD=os.environ["MAILGATE_KEY"],
    DEFAULT_FROM_EMAIL="no-reply@dev.example",
    SECRET_KEY=secrets.token_hex(), ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    SESSION_ENGINE="django.contrib.sessions.backends.cache",  # the code stays on this side
)


def page(request):
    return HttpResponse('<form action="send" method="post"><label>Email <input name="email" type="email" required></label> <button>Send a code</button></form>')


def send(request):
    code = f"{secrets.randbelow(10**6):06}"
    try:
        validate_email(request.POST["email"])
        send_mail("Your code", f"Your code is {code}.", None, [request.POST["email"]])
    except ValidationError:
        return HttpResponse("This is not an email address.", status=422)
    except SMTPRecipientsRefused as refused:
        [(_, words)] = refused.recipients.values()
        wait = re.search(rb"next email in (\d+) ms", words)
        if not wait:
            return HttpResponse("This address does not accept the email.", status=422)
        seconds = -(-int(wait[1]) // 1000)
        return HttpResponse(f"The next email can be sent in {seconds} s.", status=429, headers={"Retry-After": seconds})
    except (SMTPException, OSError):
        return HttpResponse("The email could not be sent. Try again in a minute.", status=503)
    request.session["code"] = code
    return HttpResponse('Sent. <form action="verify" method="post"><label>Code <input name="code" required></label> <button>Check</button></form>')


def verify(request):  # limit the guesses of a session
    right = secrets.compare_digest(request.session.pop("code", ""), request.POST["code"])
    return HttpResponse(status=204 if right else 422)


urlpatterns = [path("", page), path("send", send), path("verify", verify)]
execute_from_command_line([sys.argv[0], "runserver", "--noreload", os.environ.get("LISTEN", "127.0.0.1:3000")])
