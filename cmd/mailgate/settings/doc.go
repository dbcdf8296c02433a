// Package settings is everything that an operator can set, read and checked before
// anything starts.
//
// A setting has one name and is given in one of four places, the first of which wins:
//
//	flag         --smtp-url smtps://…
//	environment  MAILGATE_SMTP_URL=smtps://…
//	file         smtp_url: smtps://…          in the YAML file of --config or MAILGATE_CONFIG
//	default
//
// A secret can also be read from a file of its own, in each of these places, by adding
// "file" to its name: --smtp-url-file, MAILGATE_SMTP_URL_FILE, smtp_url_file.
//
// Whatever cannot be right is an error of one line that names the place it was given
// in: an unknown name, a value out of its range, two that do not go together. No error
// and no listing shows a secret.
package settings
