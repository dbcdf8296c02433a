// Package mailgate contains the contract of the HTTP API. The program is cmd/mailgate; package
// throttle has the limits, for use in other programs.
package mailgate

import _ "embed"

// OpenAPI is openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Problems is docs/problems.md, which explains the types of OpenAPI's problems.
//
//go:embed docs/problems.md
var Problems []byte
