package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-playground/validator/v10"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/verify"
)

// newValidate makes a validator with the rules that bodies have in their tags.
func newValidate(identity address.Identity) *validator.Validate {
	v := validator.New()
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("json") })
	rules := map[string]func(string) bool{
		"purpose":   func(text string) bool { return throttle.CheckName(text) == nil },
		"code":      func(text string) bool { _, err := verify.ParseCode(text); return err == nil },
		"admission": func(text string) bool { _, err := throttle.ParseID(text); return err == nil },
		"printable": func(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) },
	}
	// A registration fails only without a name or a function.
	for tag, good := range rules {
		_ = v.RegisterValidation(tag, func(f validator.FieldLevel) bool { return good(f.Field().String()) })
	}
	_ = v.RegisterValidation("bytes", func(f validator.FieldLevel) bool {
		most, err := strconv.Atoi(f.Param())
		return err == nil && f.Field().Len() <= most
	})
	_ = v.RegisterValidationCtx("address", func(ctx context.Context, f validator.FieldLevel) bool {
		p := ctx.(*parsed)
		p.address, p.err = address.Parse(trimmed(f.Field().String()), identity)
		return p.err == nil
	})
	return v
}

// trimmed is an address as it was typed without the spaces around it.
func trimmed(email string) string { return strings.Trim(email, " ") }

// parsed is the context of a validation. The rule address leaves the address in it, so that it is
// parsed once.
type parsed struct {
	context.Context
	address address.Address
	err     error
}

// check returns what is wrong with a body, one entry for each field, and leaves its address in
// r.parsed.
func (s *Server) check(r *request, body any) (wrong []fieldProblem) {
	r.parsed.Context = r.ctx
	err := s.validate.StructCtx(&r.parsed, body)
	fields, _ := errors.AsType[validator.ValidationErrors](err)
	for _, field := range fields {
		wrong = append(wrong, r.explainField(field))
	}
	return wrong
}

// invalidFields returns the problem of a body, or nil if nothing is wrong.
func invalidFields(wrong []fieldProblem) error {
	if len(wrong) == 0 {
		return nil
	}
	return &problem{kind: invalid, fields: wrong}
}

// invalidField returns the problem of a body with one invalid field.
func invalidField(name, reason, detail string) error {
	return &problem{kind: invalid, fields: []fieldProblem{{name, reason, detail}}}
}

// reasons maps tags to words for programs and sentences for people; %s is the field.
var reasons = map[string]struct{ word, sentence string }{
	"required":      {"missing", "%s is missing."},
	"min":           {"empty", "%s is empty."},
	"max":           {"too-long", "%s must not exceed 500 characters."},
	"bytes":         {"too-long", "%s must not exceed 256 bytes."},
	"printable":     {"invalid", "%s has a control character."},
	"ip":            {"invalid", "%s must be an IPv4 or IPv6 address."},
	"purpose":       {"invalid", "%s must be 1 to 32 lower-case letters, digits, - and _, and start with a letter."},
	"excluded_with": {"with-code", "%s cannot be combined with a code of your own."},
	"code":          {"invalid", "%s must be six digits."},
	"admission":     {"invalid", "%s must be the id of a take."},
}

func (r *request) explainField(wrong validator.FieldError) fieldProblem {
	name := wrong.Field()
	if refused, ok := errors.AsType[address.Reason](r.parsed.err); ok && wrong.Tag() == "address" {
		return addressProblem(name, refused)
	}
	reason := reasons[wrong.Tag()]
	return fieldProblem{name, reason.word, fmt.Sprintf(reason.sentence, name)}
}
