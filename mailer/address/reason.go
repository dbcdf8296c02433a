package address

// Reason is the error of Parse: one word for why an address is refused. Programs may rely on the
// words; more may be added.
type Reason string

// Error returns one sentence that may be shown to the visitor. It never holds the address.
func (r Reason) Error() string { return sentences[r] }

var sentences = map[Reason]string{
	"empty":                 "the address is empty",
	"too-long":              "the address is longer than 254 octets",
	"not-utf8":              "the address is not valid UTF-8",
	"control":               "the address contains a control character",
	"invisible":             "the address contains a character that cannot be seen",
	"display-name":          "the address must have no display name and no angle brackets",
	"quoted":                "quoted local parts are not accepted",
	"comment":               "comments in parentheses are not accepted",
	"literal":               "the domain must be a name, not an address in brackets",
	"space":                 "the address contains a space",
	"no-at":                 "the address has no @",
	"several-at":            "the address has more than one @",
	"route":                 "the address contains % or !, which a relay may read as a route to another address",
	"no-local":              "nothing is before the @",
	"local-too-long":        "more than 64 octets are before the @",
	"local-not-ascii":       "only ASCII characters are allowed before the @; internationalised mailboxes (SMTPUTF8) are not supported",
	"local-dot":             "the part before the @ starts or ends with a dot or has two in a row",
	"local-character":       "a character before the @ is not allowed there",
	"encoded-word":          "a = followed by ? before the @ is not allowed, as email programs may decode it into another name",
	"no-domain":             "nothing is after the @",
	"domain-trailing-dot":   "the domain ends with a dot",
	"domain-dot":            "the domain starts with a dot or has two in a row",
	"domain-without-dot":    "the domain has no dot",
	"domain-character":      "a character in the domain is not allowed there",
	"domain-underscore":     "the domain contains an underscore",
	"domain-hyphen":         "a part of the domain starts or ends with a hyphen, or has two where only xn-- may",
	"domain-numeric":        "the domain ends in a number",
	"domain-label-too-long": "a part of the domain is longer than 63 octets",
	"domain-idn":            "the domain is not a valid internationalised name",
	"domain-punycode":       "the domain has an xn-- part that encodes no valid name",
}
