// Package mailgate holds the contract of its HTTP API, as the server hands it out.
//
// The program is cmd/mailgate; the rule it keeps, for use in other programs, is
// package throttle.
package mailgate

import _ "embed"

// OpenAPI is openapi.yaml: every route, request and answer.
//
//go:embed openapi.yaml
var OpenAPI []byte
