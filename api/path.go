package api

import (
	"github.com/mailgate/mailgate/mailer/address"
)

// readMailbox reads the {email} of a path.
func (s *Server) readMailbox(in *incoming) (address.Address, error) {
	text, ok := unescape(in.parameter)
	if !ok {
		return address.Address{}, &problem{kind: badRequest, detail: "The path has a % without two hexadecimal digits after it."}
	}
	return address.Parse(text, s.with.Identity)
}

// unescape undoes percent-encoding, once. A plus is a plus: a path is no form.
func unescape(text []byte) (string, bool) {
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			plain = append(plain, text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		high, low := hexDigit(text[i+1]), hexDigit(text[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		plain = append(plain, byte(high<<4|low))
		i += 2
	}
	return string(plain), true
}

// hexDigit is the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
