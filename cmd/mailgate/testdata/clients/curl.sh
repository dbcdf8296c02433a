# curl, which says the code.
i=$#
while [ "$i" -gt 0 ]; do
	set -- "$@" --mail-rcpt "$1"
	shift
	i=$((i - 1))
done
printf 'From: no-reply@acme.example\r\nSubject: code\r\n\r\n123456\r\n' |
	curl -sS "smtp://$SMTP_HOST:$SMTP_PORT" --user "$SMTP_USER:$SMTP_PASSWORD" --mail-from no-reply@acme.example "$@" -T -
