package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
)

// email is the field of a body for an address.
type email struct {
	address.Address
	refused address.Reason
}

// missing is the reason of an address that is not there.
const missing address.Reason = "missing"

// readEmail returns the reader of an email field.
func readEmail(identity address.Identity) func(*jsontext.Decoder, *email) error {
	return func(from *jsontext.Decoder, to *email) error {
		var text string
		if err := readString(from, &text); err != nil {
			return err
		}
		var refused error
		to.Address, refused = parseAddress(text, identity)
		to.refused, _ = errors.AsType[address.Reason](refused)
		return nil
	}
}

// parseAddress ignores spaces around an address. Its error is an address.Reason.
func parseAddress(text string, identity address.Identity) (address.Address, error) {
	return address.Parse(strings.Trim(text, " "), identity)
}

// ValidatorValue implements validator.Valuer.
func (e email) ValidatorValue() any { return string(e.reason()) }

// reason returns why there is no address, or "".
func (e email) reason() address.Reason {
	if e.refused == "" && e.IsZero() {
		return missing
	}
	return e.refused
}

// newValidate makes a validator with the rules that bodies have in their tags.
func newValidate() *validator.Validate {
	v := validator.New()
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("json") })
	rules := map[string]func(string) bool{
		"purpose":   func(text string) bool { return throttle.CheckName(text) == nil },
		"code":      func(text string) bool { _, err := verify.ParseCode(text); return err == nil },
		"admission": func(text string) bool { _, err := throttle.ParseID(text); return err == nil },
		"opaque":    func(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) },
		"printable": func(text string) bool { return !strings.ContainsFunc(text, message.IsControl) },
		"address":   func(reason string) bool { return reason == "" },
	}
	// A registration fails only without a name or a function.
	for tag, good := range rules {
		_ = v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return good(f.Field().String()) })
	}
	_ = v.RegisterValidation("bytes", func(f validator.FieldLevel) bool {
		most, err := strconv.Atoi(f.Param())
		return err == nil && f.Field().Len() <= most
	})
	return v
}

// check returns what is wrong with a body by its tags, one entry for each field.
func (s *Server) check(body any) (wrong []fieldProblem) {
	fields, _ := errors.AsType[validator.ValidationErrors](s.validate.Struct(body))
	for _, field := range fields {
		name, tag := field.Field(), field.Tag()
		if tag == "address" {
			if reason, _ := field.Value().(string); reason != string(missing) {
				wrong = append(wrong, addressProblem(name, address.Reason(reason)))
				continue
			}
			tag = "required"
		}
		wrong = append(wrong, fieldProblem{name, reasons[tag].word, fmt.Sprintf(reasons[tag].sentence, name)})
	}
	return wrong
}

// invalidFields returns the problem of a body or a query, or nil if nothing is wrong.
func invalidFields(wrong ...fieldProblem) error {
	if len(wrong) == 0 {
		return nil
	}
	return &problem{kind: invalid, members: members{Errors: wrong}}
}

func hasField(wrong []fieldProblem, name string) bool {
	return slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field == name })
}

// reasons maps tags to words for programs and sentences for people; %s is the field.
var reasons = map[string]struct{ word, sentence string }{
	"required":          {"missing", "%s is missing."},
	"min":               {"empty", "%s is empty."},
	"max":               {"too-long", "%s must not exceed 500 characters."},
	"bytes":             {"too-long", "%s must not exceed 256 bytes."},
	"oneof":             {"invalid", "%s must be complaint, manual, hard-bounce or not-me."},
	"opaque":            {"invalid", "%s has a control character."},
	"printable":         {"invalid", "%s has a control character."},
	"ip":                {"invalid", "%s must be an IPv4 or IPv6 address."},
	"purpose":           {"invalid", "%s must be 1 to 32 lower-case letters, digits, - and _, and start with a letter."},
	"excluded_with":     {"with-code", "%s cannot be combined with a code of your own."},
	"excluded_with_all": {"with-code", "%s cannot be combined with code."},
	"required_without":  {"missing", "%s is missing."},
	"eq":                {"invalid", "%s must be true."},
	"ne":                {"invalid", "%s must be 4 to 12 of 0-9, A-Z and a-z."},
	"code":              {"invalid", "%s must be six digits."},
	"admission":         {"invalid", "%s must be the id of a take."},
}
