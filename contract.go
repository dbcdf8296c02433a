// Package mailgate contains the contract of the HTTP API and the pages of docs that the server shows beside it. The program is cmd/mailgate; package
// throttle has the limits, for use in other programs.
package mailgate

import "embed"

// OpenAPI is openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Pages are the guides, and docs/problems.md, which explains the types of OpenAPI's problems.
//
//go:embed docs/getting-started.md docs/sending.md docs/countdown.md docs/problems.md
var Pages embed.FS
