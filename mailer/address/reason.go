package address

import "cmp"

// Reason says in one word why an address is refused. Programs may rely on the words;
// more may be added.
type Reason string

// The reasons of an Error.
const (
	ReasonEmpty            Reason = "empty"
	ReasonTooLong          Reason = "too-long"
	ReasonNotUTF8          Reason = "not-utf8"
	ReasonControl          Reason = "control"
	ReasonInvisible        Reason = "invisible"
	ReasonDisplayName      Reason = "display-name"
	ReasonQuoted           Reason = "quoted"
	ReasonComment          Reason = "comment"
	ReasonLiteral          Reason = "literal"
	ReasonSpace            Reason = "space"
	ReasonNoAt             Reason = "no-at"
	ReasonSeveralAt        Reason = "several-at"
	ReasonNoLocal          Reason = "no-local"
	ReasonLocalTooLong     Reason = "local-too-long"
	ReasonLocalNotASCII    Reason = "local-not-ascii"
	ReasonLocalDot         Reason = "local-dot"
	ReasonLocalCharacter   Reason = "local-character"
	ReasonRoute            Reason = "route"
	ReasonEncodedWord      Reason = "encoded-word"
	ReasonNoDomain         Reason = "no-domain"
	ReasonDomainTrailing   Reason = "domain-trailing-dot"
	ReasonDomainDot        Reason = "domain-dot"
	ReasonDomainWithoutDot Reason = "domain-without-dot"
	ReasonDomainCharacter  Reason = "domain-character"
	ReasonDomainUnderscore Reason = "domain-underscore"
	ReasonDomainHyphen     Reason = "domain-hyphen"
	ReasonDomainNumeric    Reason = "domain-numeric"
	ReasonDomainLabelLong  Reason = "domain-label-too-long"
	ReasonDomainIDN        Reason = "domain-idn"
	ReasonDomainPunycode   Reason = "domain-punycode"
)

// Error is the refusal of Parse. It never holds the address.
type Error struct {
	Reason Reason
}

// Error is one sentence that may be shown to the visitor.
func (e *Error) Error() string { return e.Reason.Sentence() }

// Sentence explains the reason to a visitor.
func (r Reason) Sentence() string { return cmp.Or(sentences[r], "the address is not valid") }

var sentences = map[Reason]string{
	ReasonEmpty:            "the address is empty",
	ReasonTooLong:          "the address is longer than 254 octets",
	ReasonNotUTF8:          "the address is not valid UTF-8",
	ReasonControl:          "the address contains a control character",
	ReasonInvisible:        "the address contains a character that cannot be seen",
	ReasonDisplayName:      "the address must stand alone, without a display name or angle brackets",
	ReasonQuoted:           "quoted local parts are not accepted",
	ReasonComment:          "comments in parentheses are not accepted",
	ReasonLiteral:          "the domain must be a name, not an address in brackets",
	ReasonSpace:            "the address contains a space",
	ReasonNoAt:             "the address has no @",
	ReasonSeveralAt:        "the address has more than one @",
	ReasonRoute:            "the address contains % or !, which a relay may read as a route to another address",
	ReasonNoLocal:          "nothing stands before the @",
	ReasonLocalTooLong:     "more than 64 octets stand before the @",
	ReasonLocalNotASCII:    "only ASCII characters may stand before the @; internationalised mailboxes (SMTPUTF8) are not supported",
	ReasonLocalDot:         "the part before the @ starts or ends with a dot or has two in a row",
	ReasonLocalCharacter:   "a character before the @ is not allowed there",
	ReasonEncodedWord:      "a = with a ? after it stands before the @, which mail programs may decode into another name",
	ReasonNoDomain:         "nothing stands after the @",
	ReasonDomainTrailing:   "the domain ends with a dot",
	ReasonDomainDot:        "the domain starts with a dot or has two in a row",
	ReasonDomainWithoutDot: "the domain has no dot",
	ReasonDomainCharacter:  "a character in the domain is not allowed there",
	ReasonDomainUnderscore: "the domain contains an underscore",
	ReasonDomainHyphen:     "a part of the domain starts or ends with a hyphen, or has two where only xn-- may",
	ReasonDomainNumeric:    "the domain ends in a number",
	ReasonDomainLabelLong:  "a part of the domain is longer than 63 octets",
	ReasonDomainIDN:        "the domain is not a valid internationalised name",
	ReasonDomainPunycode:   "the domain has an xn-- part that encodes no valid name",
}
