package mailer

// Reason says why an address will not do, in a word for machines. The words
// are promises; more may come.
type Reason string

// The reasons of an AddressError.
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

// AddressError is what ParseAddress refuses with. It never holds the address.
type AddressError struct {
	Reason Reason
}

// Error is one plain sentence that may be shown to whoever typed the address.
func (e *AddressError) Error() string { return e.Reason.Sentence() }

// Sentence explains the reason to a person.
func (r Reason) Sentence() string {
	switch r {
	case ReasonEmpty:
		return "the address is empty"
	case ReasonTooLong:
		return "the address is longer than 254 octets"
	case ReasonNotUTF8:
		return "the address is not valid UTF-8"
	case ReasonControl:
		return "the address contains a control character"
	case ReasonInvisible:
		return "the address contains a character that cannot be seen"
	case ReasonDisplayName:
		return "the address must stand alone, without a display name or angle brackets"
	case ReasonQuoted:
		return "quoted local parts are not accepted"
	case ReasonComment:
		return "comments in parentheses are not accepted"
	case ReasonLiteral:
		return "the domain must be a name, not an address in brackets"
	case ReasonSpace:
		return "the address contains a space"
	case ReasonNoAt:
		return "the address has no @"
	case ReasonSeveralAt:
		return "the address has more than one @"
	case ReasonRoute:
		return "the address contains % or !, which a relay may read as a route to another address"
	}
	if sentence := r.localSentence(); sentence != "" {
		return sentence
	}
	return r.domainSentence()
}

func (r Reason) localSentence() string {
	switch r {
	case ReasonNoLocal:
		return "nothing stands before the @"
	case ReasonLocalTooLong:
		return "more than 64 octets stand before the @"
	case ReasonLocalNotASCII:
		return "only ASCII characters may stand before the @; internationalised mailboxes (SMTPUTF8) are not supported"
	case ReasonLocalDot:
		return "the part before the @ starts or ends with a dot or has two in a row"
	case ReasonLocalCharacter:
		return "a character before the @ is not allowed there"
	case ReasonEncodedWord:
		return "a = with a ? after it stands before the @, which mail programs may decode into another name"
	}
	return ""
}

func (r Reason) domainSentence() string {
	switch r {
	case ReasonNoDomain:
		return "nothing stands after the @"
	case ReasonDomainTrailing:
		return "the domain ends with a dot"
	case ReasonDomainDot:
		return "the domain starts with a dot or has two in a row"
	case ReasonDomainWithoutDot:
		return "the domain has no dot"
	case ReasonDomainCharacter:
		return "a character in the domain is not allowed there"
	case ReasonDomainUnderscore:
		return "the domain contains an underscore"
	case ReasonDomainHyphen:
		return "a part of the domain starts or ends with a hyphen, or has two where only xn-- may"
	case ReasonDomainNumeric:
		return "the domain ends in a number"
	case ReasonDomainLabelLong:
		return "a part of the domain is longer than 63 octets"
	case ReasonDomainIDN:
		return "the domain is not a valid internationalised name"
	case ReasonDomainPunycode:
		return "the domain has an xn-- part that encodes no valid name"
	}
	return "the address is not valid"
}
